package e2e

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/ginkgo/v2/reporters"
	"github.com/onsi/ginkgo/v2/types"
	"k8s.io/kubernetes/test/e2e/framework"
)

// The framework writes its reports when the whole suite has ended. A run takes
// hours, so this report is complete after each test.
var junit = flag.String("junit", "", "The JUnit report, rewritten after each test.")

// finished is one line of progress.
type finished struct {
	Name    string  `json:"name"`
	State   string  `json:"state"`
	Seconds float64 `json:"seconds"`
	Message string  `json:"message"`
}

// ended holds the reports of the tests that have run.
var ended types.SpecReports

// reportEach reports a test that has ended.
func reportEach(report ginkgo.SpecReport) {
	if report.NumAttempts == 0 {
		// It is not selected, or the run is only a walk through all tests.
		return
	}
	ended = append(ended, report)
	line, err := json.Marshal(finished{
		Name:    report.FullText(),
		State:   report.State.String(),
		Seconds: report.RunTime.Seconds(),
		Message: message(report),
	})
	framework.ExpectNoError(err)
	// Another writer may have left a line unfinished.
	fmt.Printf("\nconformance: %s\n", line)
	if *junit != "" {
		framework.ExpectNoError(write(*junit))
	}
}

func message(report ginkgo.SpecReport) string {
	if report.Failure.IsZero() {
		return ""
	}
	if report.Failure.ForwardedPanic != "" {
		return report.Failure.ForwardedPanic
	}
	return fmt.Sprintf("%s\n%s", report.Failure.Message, report.Failure.Location)
}

// write replaces the report atomically. Only failed tests have their log in it.
func write(file string) error {
	report := types.Report{SuiteDescription: "Kubernetes e2e suite", SpecReports: ended}
	err := reporters.GenerateJUnitReportWithConfig(report, file+".new", reporters.JunitReportConfig{
		OmitTimelinesForSpecState: types.SpecStatePassed | types.SpecStateSkipped,
		OmitCapturedStdOutErr:     true,
		OmitSpecLabels:            true,
		OmitSpecSemVerConstraints: true,
		OmitLeafNodeType:          true,
	})
	if err != nil {
		return err
	}
	return os.Rename(file+".new", file)
}

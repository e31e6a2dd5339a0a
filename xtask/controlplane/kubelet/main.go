// Command kubelet is the kubelet of the Go module k8s.io/kubernetes as a static
// program for the nodes of `cargo xtask lab`.
package main

import (
	"context"
	"os"

	"github.com/spf13/cobra"
	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/logs/json/register"
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"
	"k8s.io/kubernetes/cmd/kubelet/app"
)

func main() {
	os.Exit(cli.Run(kubelet(app.NewKubeletCommand)))
}

// kubelet calls the constructor of the command, which takes a context only in newer versions.
func kubelet(maker any) *cobra.Command {
	switch maker := maker.(type) {
	case func(context.Context) *cobra.Command:
		return maker(context.Background())
	case func() *cobra.Command:
		return maker()
	default:
		panic("NewKubeletCommand wants something else")
	}
}

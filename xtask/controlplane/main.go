// Command kubernetes contains the parts of a Kubernetes control plane in one
// program, each as a subcommand with its own flags: etcd, kube-apiserver,
// kube-controller-manager, kube-scheduler, kube-proxy, kubectl.
//
// No code of Kubernetes is copied: the parts are the commands of the Go module
// k8s.io/kubernetes in the version of go.mod.
package main

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/logs/json/register"
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"
	kubectl "k8s.io/kubectl/pkg/cmd"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllermanager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	proxy "k8s.io/kubernetes/cmd/kube-proxy/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
)

var parts = map[string]func() *cobra.Command{
	"certify":                 newCertifyCommand,
	"etcd":                    newEtcdCommand,
	"fill":                    newFillCommand,
	"kube-apiserver":          apiserver.NewAPIServerCommand,
	"kube-controller-manager": controllermanager.NewControllerManagerCommand,
	"kube-proxy":              proxy.NewProxyCommand,
	"kube-scheduler":          func() *cobra.Command { return scheduler.NewSchedulerCommand() },
	"kubectl":                 kubectl.NewDefaultKubectlCommand,
	"pki":                     newPkiCommand,
}

func main() {
	name := strings.TrimSuffix(filepath.Base(os.Args[0]), ".exe")
	if _, called := parts[name]; !called && len(os.Args) > 1 {
		os.Args = os.Args[1:]
		name = os.Args[0]
	}
	part, known := parts[name]
	if !known {
		names := slices.Sorted(maps.Keys(parts))
		fmt.Fprintf(os.Stderr, "usage: kubernetes PART [FLAG]...\nPART is one of %s\n", strings.Join(names, ", "))
		os.Exit(2)
	}
	os.Exit(cli.Run(part()))
}

package main

import (
	"fmt"
	"net/url"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
	"go.etcd.io/etcd/server/v3/embed"
)

// newEtcdCommand runs one etcd member for a test: it listens on a unix socket in
// its folder, and does not sync its writes to the disk.
func newEtcdCommand() *cobra.Command {
	var folder string
	command := &cobra.Command{
		Use:          "etcd",
		Short:        "one etcd member that listens on DATA-DIR/client.sock",
		Args:         cobra.NoArgs,
		SilenceUsage: true,
		RunE:         func(*cobra.Command, []string) error { return serveEtcd(folder) },
	}
	command.Flags().StringVar(&folder, "data-dir", "", "folder for the data and the sockets")
	if err := command.MarkFlagRequired("data-dir"); err != nil {
		panic(err)
	}
	return command
}

func serveEtcd(folder string) error {
	// Sockets are named relative to the folder: an absolute name may be too long for one.
	if err := os.Chdir(folder); err != nil {
		return err
	}
	client := url.URL{Scheme: "unix", Host: "client.sock"}
	// etcd requires an advertised address with host and port, even without other members.
	advertised := url.URL{Scheme: "unix", Host: "client.sock:1"}
	peer := url.URL{Scheme: "unix", Host: "peer.sock:1"}
	config := embed.NewConfig()
	config.Name = "test"
	config.Dir = "data"
	config.ListenClientUrls = []url.URL{client}
	config.AdvertiseClientUrls = []url.URL{advertised}
	config.ListenPeerUrls = []url.URL{peer}
	config.AdvertisePeerUrls = []url.URL{peer}
	config.InitialCluster = config.InitialClusterFromName(config.Name)
	config.UnsafeNoFsync = true
	config.LogLevel = "warn"
	server, err := embed.StartEtcd(config)
	if err != nil {
		return err
	}
	defer server.Close()
	ended := make(chan os.Signal, 1)
	signal.Notify(ended, syscall.SIGTERM, syscall.SIGINT)
	select {
	case err := <-server.Err():
		return err
	case <-server.Server.StopNotify():
		return fmt.Errorf("etcd stopped by itself")
	case <-ended:
		return nil
	}
}

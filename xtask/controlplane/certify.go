package main

import (
	"crypto/ecdsa"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"
)

// newCertifyCommand writes one more certificate of an existing authority with
// the validity that a test needs: for certificates that expire, and for wrong
// clocks.
func newCertifyCommand() *cobra.Command {
	var folder, name, user, group string
	var address net.IP
	var begins, ends time.Duration
	command := &cobra.Command{
		Use:          "certify",
		Short:        "write NAME.crt and NAME.key beside the authority's: a user's, or with --address a server's",
		Args:         cobra.NoArgs,
		SilenceUsage: true,
		RunE: func(*cobra.Command, []string) error {
			authority, err := readAuthority(folder)
			if err != nil {
				return fmt.Errorf("reading the authority: %w", err)
			}
			template := clientTemplate(user, group)
			if address != nil {
				template = servingTemplate([]net.IP{address})
			}
			template.NotBefore = time.Now().Add(begins)
			template.NotAfter = time.Now().Add(ends)
			pair, err := authority.issue(template)
			if err != nil {
				return err
			}
			return pair.write(folder, name)
		},
	}
	command.Flags().StringVar(&folder, "folder", ".", "where ca.crt and ca.key are")
	command.Flags().StringVar(&name, "name", "client", "what the files are called")
	command.Flags().StringVar(&user, "user", "", "whose it is")
	command.Flags().StringVar(&group, "group", "", "a group of the user's")
	command.Flags().IPVar(&address, "address", nil, "the server's address")
	command.Flags().DurationVar(&begins, "begins", -time.Hour, "from when it is valid, from now")
	command.Flags().DurationVar(&ends, "ends", time.Hour, "until when it is valid, from now")
	return command
}

func readAuthority(folder string) (certified, error) {
	pair, err := tls.LoadX509KeyPair(filepath.Join(folder, "ca.crt"), filepath.Join(folder, "ca.key"))
	if err != nil {
		return certified{}, err
	}
	certificate, err := x509.ParseCertificate(pair.Certificate[0])
	if err != nil {
		return certified{}, err
	}
	key, ok := pair.PrivateKey.(*ecdsa.PrivateKey)
	if !ok {
		return certified{}, fmt.Errorf("the key is a %T", pair.PrivateKey)
	}
	return certified{certificate, key}, nil
}

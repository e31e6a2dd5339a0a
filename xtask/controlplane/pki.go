package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/client-go/tools/clientcmd"
	api "k8s.io/client-go/tools/clientcmd/api"
)

// validity is longer than any test, and short enough that a forgotten key
// expires soon.
const validity = 30 * 24 * time.Hour

// client is a client with a kubeconfig.
type client struct{ file, user, group string }

var clients = []client{
	{"admin", "admin", "system:masters"},
	{"controller-manager", "system:kube-controller-manager", ""},
	{"scheduler", "system:kube-scheduler", ""},
}

// newPkiCommand writes the keys of the parts: an authority, the server's
// certificate, the keys of service accounts, a kubeconfig for each client.
func newPkiCommand() *cobra.Command {
	var folder, server string
	var addresses []net.IP
	var nodes []string
	command := &cobra.Command{
		Use:          "pki",
		Short:        "write certificates, keys and kubeconfigs into a folder",
		Args:         cobra.NoArgs,
		SilenceUsage: true,
		RunE: func(*cobra.Command, []string) error {
			if err := writePki(folder, server, addresses, nodes); err != nil {
				return fmt.Errorf("writing keys: %w", err)
			}
			return nil
		},
	}
	command.Flags().StringVar(&folder, "folder", ".", "where to write")
	command.Flags().StringVar(&server, "server", "", "the API server's URL, for the kubeconfigs")
	command.Flags().IPSliceVar(&addresses, "address", nil, "addresses under which the API server is reached")
	command.Flags().StringSliceVar(&nodes, "node", nil, "nodes whose kubelets get a kubeconfig")
	return command
}

func writePki(folder, server string, addresses []net.IP, nodes []string) error {
	authority, err := newAuthority()
	if err != nil {
		return err
	}
	if err := authority.write(folder, "ca"); err != nil {
		return err
	}
	if err := writeServer(folder, authority, addresses); err != nil {
		return err
	}
	accounts, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	if err := writeKey(filepath.Join(folder, "service-accounts.key"), accounts); err != nil {
		return err
	}
	all := slices.Clone(clients)
	for _, node := range nodes {
		all = append(all, client{"node-" + node, "system:node:" + node, "system:nodes"})
	}
	for _, one := range all {
		certified, err := authority.issueClient(one.user, one.group)
		if err != nil {
			return err
		}
		file := filepath.Join(folder, one.file+".kubeconfig")
		if err := writeKubeconfig(file, server, authority, certified); err != nil {
			return err
		}
	}
	return nil
}

// writeServer writes the API server's certificate, and its client certificate for kubelets.
func writeServer(folder string, authority certified, addresses []net.IP) error {
	serving, err := authority.issue(servingTemplate(addresses))
	if err != nil {
		return err
	}
	if err := serving.write(folder, "apiserver"); err != nil {
		return err
	}
	asking, err := authority.issueClient("kube-apiserver-kubelet-client", "system:masters")
	if err != nil {
		return err
	}
	return asking.write(folder, "kubelet-client")
}

func servingTemplate(addresses []net.IP) x509.Certificate {
	return x509.Certificate{
		Subject:     pkix.Name{CommonName: "kube-apiserver"},
		DNSNames:    []string{"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc"},
		IPAddresses: addresses,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
}

// certified is a certificate with its key.
type certified struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

func newAuthority() (certified, error) {
	template := x509.Certificate{
		Subject:               pkix.Name{CommonName: "ipvs-topo test authority"},
		IsCA:                  true,
		BasicConstraintsValid: true,
		KeyUsage:              x509.KeyUsageCertSign,
	}
	return issue(template, certified{})
}

func (authority certified) issue(template x509.Certificate) (certified, error) {
	template.KeyUsage = x509.KeyUsageDigitalSignature
	return issue(template, authority)
}

func (authority certified) issueClient(user, group string) (certified, error) {
	return authority.issue(clientTemplate(user, group))
}

func clientTemplate(user, group string) x509.Certificate {
	subject := pkix.Name{CommonName: user}
	if group != "" {
		subject.Organization = []string{group}
	}
	return x509.Certificate{
		Subject:     subject,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
}

// issue signs with the authority's key, or self-signs if there is no authority.
func issue(template x509.Certificate, authority certified) (certified, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return certified{}, err
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return certified{}, err
	}
	template.SerialNumber = serial
	if template.NotAfter.IsZero() {
		// The clocks of guests may be behind.
		template.NotBefore = time.Now().Add(-24 * time.Hour)
		template.NotAfter = time.Now().Add(validity)
	}
	if authority.key == nil {
		authority = certified{&template, key}
	}
	signed, err := x509.CreateCertificate(rand.Reader, &template, authority.certificate, key.Public(), authority.key)
	if err != nil {
		return certified{}, err
	}
	certificate, err := x509.ParseCertificate(signed)
	return certified{certificate, key}, err
}

func (pair certified) encoded() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: pair.certificate.Raw})
}

func (pair certified) write(folder, name string) error {
	if err := os.WriteFile(filepath.Join(folder, name+".crt"), pair.encoded(), 0o600); err != nil {
		return err
	}
	return writeKey(filepath.Join(folder, name+".key"), pair.key)
}

func encodeKey(key *ecdsa.PrivateKey) ([]byte, error) {
	bytes, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return nil, fmt.Errorf("encoding a key: %w", err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: bytes}), nil
}

func writeKey(file string, key *ecdsa.PrivateKey) error {
	encoded, err := encodeKey(key)
	if err != nil {
		return err
	}
	return os.WriteFile(file, encoded, 0o600)
}

func writeKubeconfig(file, server string, authority, client certified) error {
	key, err := encodeKey(client.key)
	if err != nil {
		return err
	}
	config := api.NewConfig()
	config.Clusters["test"] = &api.Cluster{Server: server, CertificateAuthorityData: authority.encoded()}
	config.AuthInfos["user"] = &api.AuthInfo{ClientCertificateData: client.encoded(), ClientKeyData: key}
	config.Contexts["test"] = &api.Context{Cluster: "test", AuthInfo: "user"}
	config.CurrentContext = "test"
	return clientcmd.WriteToFile(*config, file)
}

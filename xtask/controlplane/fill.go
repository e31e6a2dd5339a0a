package main

import (
	"context"
	"fmt"
	"net/netip"
	"sync"

	"github.com/spf13/cobra"
	core "k8s.io/api/core/v1"
	discovery "k8s.io/api/discovery/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
)

const (
	// fillNamespace is the namespace of everything that fill creates.
	fillNamespace = "bench"
	// fillNodes is the number of nodes with endpoints, in three zones.
	fillNodes = 9
	// fillWriters is the number of concurrent writers.
	fillWriters = 32
	// probeAddress is the cluster IP of the Service `probe`, whose only endpoint the bench moves.
	probeAddress = "10.96.0.80"
	// probeEndpoint is the first endpoint of `probe`.
	probeEndpoint = "10.244.0.2"
	// firstNodePort is the node port of `probe`; those of the other Services follow. 10,000 of them end below the ports
	// of outgoing connections.
	firstNodePort = 20000
)

// filling describes the cluster to create.
type filling struct {
	client              kubernetes.Interface
	services, endpoints int
	serviceType, guest  string
}

// newFillCommand creates a cluster without kubelets: nodes, Services and EndpointSlices.
func newFillCommand() *cobra.Command {
	var kubeconfig string
	var cluster filling
	command := &cobra.Command{
		Use:          "fill",
		Short:        "create nodes, Services and EndpointSlices for a measurement",
		Args:         cobra.NoArgs,
		SilenceUsage: true,
		RunE: func(command *cobra.Command, _ []string) error {
			config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
			if err != nil {
				return err
			}
			config.QPS = -1
			if cluster.client, err = kubernetes.NewForConfig(config); err != nil {
				return err
			}
			return cluster.make(command.Context())
		},
	}
	command.Flags().StringVar(&kubeconfig, "kubeconfig", "", "whose cluster")
	command.Flags().IntVar(&cluster.services, "services", 1000, "how many Services")
	command.Flags().IntVar(&cluster.endpoints, "endpoints", 10, "how many endpoints each has")
	command.Flags().StringVar(&cluster.serviceType, "type", "ClusterIP", "their type; every load balancer has an address")
	command.Flags().StringVar(&cluster.guest, "guest", "10.0.2.15", "address of the node n0, which is measured")
	return command
}

func (cluster filling) make(ctx context.Context) error {
	namespace := core.Namespace{ObjectMeta: meta.ObjectMeta{Name: fillNamespace}}
	if _, err := cluster.client.CoreV1().Namespaces().Create(ctx, &namespace, meta.CreateOptions{}); err != nil {
		return err
	}
	for number := range fillNodes {
		if err := cluster.node(ctx, number); err != nil {
			return err
		}
	}
	if err := cluster.service(ctx, "probe", 0, probeAddress, []string{probeEndpoint}); err != nil {
		return err
	}
	return inParallel(cluster.services, func(number int) error {
		endpoints := make([]string, cluster.endpoints)
		for nth := range endpoints {
			endpoints[nth] = podAddress(number*cluster.endpoints + nth)
		}
		return cluster.service(ctx, fmt.Sprintf("s-%05d", number), number+1, "", endpoints)
	})
}

func (cluster filling) node(ctx context.Context, number int) error {
	address := cluster.guest
	if number > 0 {
		address = fmt.Sprintf("192.0.2.%d", number)
	}
	node := core.Node{ObjectMeta: meta.ObjectMeta{
		Name:   nodeName(number),
		Labels: map[string]string{core.LabelTopologyZone: fmt.Sprintf("z%d", number%3), core.LabelHostname: nodeName(number)},
	}}
	made, err := cluster.client.CoreV1().Nodes().Create(ctx, &node, meta.CreateOptions{})
	if err != nil {
		return err
	}
	// Controllers write other fields of new nodes at the same time.
	made.ResourceVersion = ""
	made.Status.Addresses = []core.NodeAddress{{Type: core.NodeInternalIP, Address: address}}
	made.Status.Conditions = []core.NodeCondition{{Type: core.NodeReady, Status: core.ConditionTrue}}
	_, err = cluster.client.CoreV1().Nodes().UpdateStatus(ctx, made, meta.UpdateOptions{})
	return err
}

// service creates a Service with one port, its nth node port and load balancer address if its type has them, and the
// slice with its endpoints.
func (cluster filling) service(ctx context.Context, name string, nth int, address string, endpoints []string) error {
	port := core.ServicePort{Name: "http", Port: 80}
	kind := core.ServiceType(cluster.serviceType)
	if kind != core.ServiceTypeClusterIP {
		port.NodePort = int32(firstNodePort + nth)
	}
	service := core.Service{
		ObjectMeta: meta.ObjectMeta{Name: name, Namespace: fillNamespace},
		Spec:       core.ServiceSpec{ClusterIP: address, Type: kind, Ports: []core.ServicePort{port}},
	}
	services := cluster.client.CoreV1().Services(fillNamespace)
	made, err := services.Create(ctx, &service, meta.CreateOptions{})
	if err != nil {
		return err
	}
	if kind == core.ServiceTypeLoadBalancer {
		made.Status.LoadBalancer.Ingress = []core.LoadBalancerIngress{{IP: loadBalancerAddress(nth + 1)}}
		if _, err := services.UpdateStatus(ctx, made, meta.UpdateOptions{}); err != nil {
			return err
		}
	}
	slice := discovery.EndpointSlice{
		ObjectMeta: meta.ObjectMeta{
			Name: name, Namespace: fillNamespace,
			Labels: map[string]string{discovery.LabelServiceName: name},
		},
		AddressType: discovery.AddressTypeIPv4,
		Ports:       []discovery.EndpointPort{{Name: pointer("http"), Port: pointer(int32(8080)), Protocol: pointer(core.ProtocolTCP)}},
	}
	for nth, endpoint := range endpoints {
		slice.Endpoints = append(slice.Endpoints, discovery.Endpoint{
			Addresses:  []string{endpoint},
			Conditions: discovery.EndpointConditions{Ready: pointer(true)},
			NodeName:   pointer(nodeName(nth % fillNodes)),
			Zone:       pointer(fmt.Sprintf("z%d", nth%fillNodes%3)),
		})
	}
	_, err = cluster.client.DiscoveryV1().EndpointSlices(fillNamespace).Create(ctx, &slice, meta.CreateOptions{})
	return err
}

func nodeName(number int) string { return fmt.Sprintf("n%d", number) }

// podAddress is the nth address of 10.128.0.0/9.
func podAddress(nth int) string {
	return netip.AddrFrom4([4]byte{10, byte(128 + nth>>16), byte(nth >> 8), byte(nth)}).String()
}

// loadBalancerAddress is an address of 198.18.0.0/15, the range for benchmarks (RFC 2544).
func loadBalancerAddress(nth int) string {
	return netip.AddrFrom4([4]byte{198, 18, byte(nth >> 8), byte(nth)}).String()
}

// inParallel calls work for 0 to count-1 and returns the first error.
func inParallel(count int, work func(int) error) error {
	numbers := make(chan int)
	var first error
	var once sync.Once
	var writers sync.WaitGroup
	for range fillWriters {
		writers.Go(func() {
			for number := range numbers {
				if err := work(number); err != nil {
					once.Do(func() { first = err })
				}
			}
		})
	}
	for number := range count {
		numbers <- number
	}
	close(numbers)
	writers.Wait()
	return first
}

func pointer[T any](value T) *T { return &value }

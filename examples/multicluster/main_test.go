package main

import (
	"context"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlconfig "sigs.k8s.io/controller-runtime/pkg/config"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/multicluster-runtime/providers/kubeconfig"

	"github.com/crdcache/crdcache/dynamicinformer"
	"github.com/crdcache/crdcache/test/testcluster"
)

// newCluster returns a cluster in memory and a client of it.
func newCluster(t *testing.T) (*testcluster.Cluster, client.Client) {
	t.Helper()
	cluster, err := testcluster.New(t.Context(), testcluster.Options{})
	if err != nil {
		t.Fatal(err)
	}
	direct, err := client.New(cluster.Config(), client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return cluster, direct
}

// secretOf returns a Secret with the kubeconfig of a cluster.
func secretOf(t *testing.T, name, token string) *corev1.Secret {
	t.Helper()
	config := clientcmdapi.NewConfig()
	config.Clusters["c"] = &clientcmdapi.Cluster{Server: "http://" + name}
	config.AuthInfos["u"] = &clientcmdapi.AuthInfo{Token: token}
	config.Contexts["x"] = &clientcmdapi.Context{Cluster: "c", AuthInfo: "u"}
	config.CurrentContext = "x"
	data, err := clientcmd.Write(*config)
	if err != nil {
		t.Fatal(err)
	}
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name,
		Labels: map[string]string{kubeconfig.DefaultKubeconfigSecretLabel: "true"}},
		Data: map[string][]byte{kubeconfig.DefaultKubeconfigSecretKey: data}}
}

// await polls until condition returns true.
func await(t *testing.T, description string, condition func(context.Context) (bool, error)) {
	t.Helper()
	err := wait.PollUntilContextTimeout(context.Background(), 10*time.Millisecond, time.Minute, true,
		condition)
	if err != nil {
		t.Fatalf("await %s: %v", description, err)
	}
}

// TestClustersJoinAndLeave adds clusters while the manager runs, rotates a kubeconfig, and removes a
// cluster.
func TestClustersJoinAndLeave(t *testing.T) {
	host, hostClient := newCluster(t)
	group, err := dynamicinformer.NewGroup(dynamicinformer.GroupOptions{MemoryBudget: 64 << 20})
	if err != nil {
		t.Fatal(err)
	}
	members, clients := map[string]*testcluster.Cluster{}, map[string]client.Client{}
	for n := range 3 {
		name := fmt.Sprint("member-", n)
		members[name], clients[name] = newCluster(t)
	}
	secrets := kubeconfig.Options{Namespace: "default", RESTOptions: []func(*rest.Config) error{
		func(config *rest.Config) error { // the clusters are only reachable in memory
			config.Transport = members[config.Host[len("http://"):]].Config().Transport
			return nil
		}}}
	ctx, cancel := context.WithCancel(t.Context())
	manager, err := newManager(ctx, group, host.Config(), ctrl.Options{
		Metrics:    metricsserver.Options{BindAddress: "0"},
		Controller: ctrlconfig.Controller{SkipNameValidation: new(true)}, // for -count
	}, secrets)
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- manager.Start(ctx) }() // ended by cancel

	awaitAnnotation := func(member, configMap string) {
		t.Helper()
		created := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: configMap,
			Labels: map[string]string{requestLabel: "yes"}}}
		if err := clients[member].Create(ctx, created); err != nil {
			t.Fatal(err)
		}
		await(t, member+" of "+configMap, func(ctx context.Context) (bool, error) {
			err := clients[member].Get(ctx, client.ObjectKeyFromObject(created), created)
			return created.Annotations[annotation] == member, err
		})
	}
	countClusters := func() (n int) {
		for range group.All() {
			n++
		}
		return n
	}
	for member := range members {
		if err := hostClient.Create(ctx, secretOf(t, member, "first")); err != nil {
			t.Fatal(err)
		}
		awaitAnnotation(member, "one")
	}
	if n, want := countClusters(), len(members)+1; n != want { // with the cluster of the Secrets
		t.Errorf("the group has %d clusters, want %d", n, want)
	}
	if err := hostClient.Update(ctx, secretOf(t, "member-1", "second")); err != nil {
		t.Fatal(err)
	}
	awaitAnnotation("member-1", "two")
	if err := hostClient.Delete(ctx, secretOf(t, "member-2", "")); err != nil {
		t.Fatal(err)
	}
	await(t, "the removal", func(context.Context) (bool, error) { return countClusters() == len(members), nil })
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	await(t, "the end of all caches", func(context.Context) (bool, error) { return countClusters() == 0, nil })
}

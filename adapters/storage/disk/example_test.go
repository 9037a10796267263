package disk_test

import (
	"context"
	"fmt"
	"os"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/crdcache/crdcache/adapters/storage/disk"
	"github.com/crdcache/crdcache/dynamicinformer"
	"github.com/crdcache/crdcache/test/testcluster"
)

// The second factory, usually in another process, resumes from the state that the first one persisted.
func Example() {
	ctx := context.Background()
	cluster, err := testcluster.New(ctx, testcluster.Options{})
	must(err)
	settings := &corev1.ConfigMap{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "settings"}}
	must(cluster.Load(ctx, settings))
	dir, err := os.MkdirTemp("", "kept")
	must(err)
	defer os.RemoveAll(dir)
	for range 2 {
		must(run(ctx, cluster, dir))
	}
	// Output:
	// default/settings, resumed: false
	// default/settings, resumed: true
}

// run does the work of one process.
func run(ctx context.Context, cluster *testcluster.Cluster, dir string) error {
	kept := disk.New(dir, disk.Options{})
	defer kept.Close(ctx)
	factory, err := dynamicinformer.New(dynamicinformer.Options{Config: cluster.Config(), Persistence: kept})
	if err != nil {
		return err
	}
	configMaps, err := factory.ForResource(corev1.SchemeGroupVersion.WithResource("configmaps"))
	if err != nil {
		return err
	}
	if err := factory.Start(ctx); err != nil {
		return err
	}
	if err := factory.WaitForSync(ctx); err != nil {
		return err
	}
	for _, key := range configMaps.GetStore().ListKeys() {
		fmt.Printf("%s, resumed: %v\n", key, configMaps.Persistence().Resumed)
	}
	return factory.Shutdown(ctx) // saves unsaved changes
}

// must panics on an error.
func must(err error) {
	if err != nil {
		panic(err)
	}
}

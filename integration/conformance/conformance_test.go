package conformance_test

import (
	"context"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/crdcache/crdcache/dynamicinformer"
	"github.com/crdcache/crdcache/integration/harness"
	"github.com/crdcache/crdcache/internal/informer"
	"github.com/crdcache/crdcache/internal/informer/conformance"
	"github.com/crdcache/crdcache/internal/testkit/middlebox"
	"github.com/crdcache/crdcache/storage/s2"
	"github.com/crdcache/crdcache/storage/zstd"
)

// subjects are what is compared with client-go: the informer that everything is built on, on client-go's client
// and on ours, and what users get.
func subjects() []conformance.Subject {
	return []conformance.Subject{
		{Name: "informer", New: onClient(conformance.DefaultClient)},
		{Name: "informer on our client", New: onClient(newClient)},
		{Name: "packed", New: storing(dynamicinformer.Storage{Mode: dynamicinformer.StoragePacked})},
		{Name: "compressed", New: storing(dynamicinformer.Storage{
			Mode: dynamicinformer.StorageCompressed, Compression: zstd.New(zstd.Options{}),
		})},
		{Name: "adaptive", New: ofFactory(func(o *dynamicinformer.Options, setup conformance.Setup) error {
			o.Config, o.MemoryBudget = setup.Config, 1 // so that all is compressed that can be
			o.Defaults.Storage = dynamicinformer.Storage{Mode: dynamicinformer.StorageAdaptive, Compression: s2.New(s2.Options{})}
			return nil
		})},
		{Name: "object", New: storing(dynamicinformer.Storage{Mode: dynamicinformer.StorageObject})},
		{Name: "packed on client-go's client", New: ofFactory(func(o *dynamicinformer.Options, setup conformance.Setup) (err error) {
			o.Client, err = dynamic.NewForConfig(setup.Config)
			return err
		})},
	}
}

// storing is a factory on a client of its own with a storage mode. The metadata mode shows something else than
// client-go does.
func storing(storage dynamicinformer.Storage) conformance.New {
	return ofFactory(func(o *dynamicinformer.Options, setup conformance.Setup) error {
		o.Config, o.Defaults.Storage = setup.Config, storage
		return nil
	})
}

func TestConformance(t *testing.T) {
	conformance.Run(t, harness.Config(t), subjects()...)
}

// TestConformanceBehindProxy plays the scenarios behind a proxy that speaks HTTP/1.1 alone and compresses
// what it may.
func TestConformanceBehindProxy(t *testing.T) {
	config := harness.Behind(t, middlebox.Compress(false))
	conformance.Run(t, config, conformance.Subject{Name: "packed", New: storing(dynamicinformer.Storage{Mode: dynamicinformer.StoragePacked})})
}

func TestConformanceInOutages(t *testing.T) {
	conformance.RunOutages(t, harness.Config(t), conformance.Server{
		Kill: harness.KillAPIServer, Restart: harness.RestartAPIServer, Compact: harness.Compact,
	}, subjects()...)
}

func newClient(config *rest.Config) (dynamic.Interface, error) {
	return dynamicinformer.NewClient(config, nil)
}

func onClient(newClient conformance.NewClient) conformance.New {
	return func(t testing.TB, setup conformance.Setup) cache.SharedIndexInformer {
		return informer.New(setup.ListWatch(t, newClient), informer.Options{
			ExampleObject: &unstructured.Unstructured{}, ResyncPeriod: setup.Resync, Indexers: setup.Indexers,
		})
	}
}

// ofFactory makes informers of a factory each, which adjust completes.
func ofFactory(adjust func(*dynamicinformer.Options, conformance.Setup) error) conformance.New {
	return func(t testing.TB, setup conformance.Setup) cache.SharedIndexInformer {
		t.Helper()
		options := dynamicinformer.Options{Defaults: resourceOptions(t, setup)}
		if err := adjust(&options, setup); err != nil {
			t.Fatal(err)
		}
		factory, err := dynamicinformer.New(options)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := factory.Shutdown(context.Background()); err != nil {
				t.Error(err)
			}
		})
		i, err := factory.ForResource(setup.GVR)
		if err != nil {
			t.Fatal(err)
		}
		return i
	}
}

// resourceOptions are those of a setup. The index by namespace is always there.
func resourceOptions(t testing.TB, setup conformance.Setup) dynamicinformer.ResourceOptions {
	t.Helper()
	options := dynamicinformer.ResourceOptions{Resync: &setup.Resync, Indexers: cache.Indexers{}}
	if setup.Namespace != "" {
		options.Namespaces = dynamicinformer.InNamespaces(setup.Namespace)
	}
	var err error
	if options.LabelSelector, err = labels.Parse(setup.LabelSelector); err != nil {
		t.Fatal(err)
	}
	if options.FieldSelector, err = fields.ParseSelector(setup.FieldSelector); err != nil {
		t.Fatal(err)
	}
	for name, f := range setup.Indexers {
		if name != cache.NamespaceIndex {
			options.Indexers[name] = f
		}
	}
	return options
}

package conformance_test

import (
	"context"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"

	"github.com/crdcache/crdcache/dynamicinformer"
	"github.com/crdcache/crdcache/internal/informer"
	"github.com/crdcache/crdcache/internal/informer/conformance"
	"github.com/crdcache/crdcache/internal/testkit"
	"github.com/crdcache/crdcache/test/integration/harness"
)

// subjects returns the informers that are compared with client-go's: the internal informer, and those of a
// factory with its own client and with client-go's. The unit tests of internal/informer run the scenarios in
// the other storage modes, which do not depend on the server.
func subjects() []conformance.Subject {
	return []conformance.Subject{
		{Name: "informer", New: newWithClient(conformance.DefaultClient)},
		{Name: "packed", New: newPacked},
		{Name: "packed on client-go's client",
			New: newWithFactory(func(o *dynamicinformer.Options, setup conformance.Setup) (err error) {
				o.Client, err = dynamic.NewForConfig(setup.Config)
				return err
			})},
	}
}

// newPacked is a factory with its own client and the default storage mode.
var newPacked = newWithFactory(func(o *dynamicinformer.Options, setup conformance.Setup) error {
	o.Config = setup.Config
	return nil
})

// newNotStored is packed without stored objects.
var newNotStored = newWithFactory(func(o *dynamicinformer.Options, setup conformance.Setup) error {
	o.Config, o.Defaults.Storage.Mode = setup.Config, dynamicinformer.StorageNone
	return nil
})

func TestConformance(t *testing.T) {
	conformance.Run(t, harness.Config(t), append(subjects(),
		conformance.Subject{Name: "none", WithoutObjects: true, New: conformance.WithMirror(newNotStored)})...)
}

// TestConformanceBehindProxy runs the scenarios through a proxy for HTTP/1.1 that compresses responses.
func TestConformanceBehindProxy(t *testing.T) {
	config := harness.ConfigThroughProxy(t, testkit.Compress(false))
	conformance.Run(t, config, conformance.Subject{Name: "packed", New: newPacked})
}

func newWithClient(newClient conformance.NewClientFunc) conformance.NewInformerFunc {
	return func(t testing.TB, setup conformance.Setup) cache.SharedIndexInformer {
		return informer.New(setup.ListWatch(t, newClient), informer.Options{
			ExampleObject: &unstructured.Unstructured{}, ResyncPeriod: setup.Resync, Indexers: setup.Indexers,
		})
	}
}

// newWithFactory returns informers that each have a factory. adjust completes its options.
func newWithFactory(
	adjust func(*dynamicinformer.Options, conformance.Setup) error) conformance.NewInformerFunc {
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

// resourceOptions returns the options of a setup. There is always an index by namespace.
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

package dynamicinformer_test

import (
	"context"
	"log/slog"
	"os"

	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"

	"github.com/crdcache/crdcache/dynamicinformer"
)

// Log everything with slog, also what client-go logs.
func Example_slog() {
	withoutTime := func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}
	handler := slog.NewTextHandler(os.Stdout, &slog.HandlerOptions{ReplaceAttr: withoutTime})
	klog.SetSlogLogger(slog.New(handler)) // before the first informer runs
	defer klog.ClearLogger()

	factory, err := dynamicinformer.New(dynamicinformer.Options{Config: &rest.Config{Host: "https://cluster.example"}})
	must(err)
	ctx, cancel := context.WithCancel(klog.NewContext(context.Background(), klog.Background().WithValues("shop", "berlin")))
	cancel()
	informer := factory.MustForResource(widgets)
	informer.RunWithContext(ctx)
	informer.RunWithContext(ctx)

	// Output:
	// level=INFO msg="An informer runs only once, ignoring another call" shop=berlin type=widgets.v1.example.com
}

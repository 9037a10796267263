package dynamicinformer_test

import (
	"context"
	"log/slog"
	"os"

	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"

	"github.com/crdcache/crdcache/dynamicinformer"
)

// Log with slog. Each message has a logger from a context, an option or klog; all three are slog's then.
func Example_slog() {
	handler := slog.NewTextHandler(os.Stdout, &slog.HandlerOptions{
		ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			if a.Key == slog.TimeKey {
				return slog.Attr{}
			}
			return a
		},
	})
	klog.SetSlogLogger(slog.New(handler)) // before the first informer
	defer klog.ClearLogger()

	server := cluster()
	defer server.Close()
	ctx := klog.NewContext(context.Background(), klog.Background().WithValues("shop", "berlin"))
	factory, err := dynamicinformer.New(dynamicinformer.Options{Config: &rest.Config{Host: server.URL}})
	must(err)
	informer, err := factory.ForResource(widgets)
	must(err)
	must(factory.Start(ctx))
	defer factory.Shutdown(context.Background())
	must(factory.WaitForSync(ctx))
	informer.RunWithContext(ctx) // the factory runs it already

	// Output: level=INFO msg="An informer runs only once, ignoring another call" shop=berlin type=widgets.v1.example.com
}

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/util/flowcontrol"
	"k8s.io/client-go/util/workqueue"
)

// The type of the sandbox's objects.
const (
	// certificatesType is its name in commands.
	certificatesType = "certificates.cert-manager.io"
	// certificatesPath is its API path.
	certificatesPath = "/apis/cert-manager.io/v1/certificates"
)

// newClient returns a REST client for absolute paths, without a rate limit.
func newClient(kubeconfig string) (*rest.RESTClient, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, err
	}
	config = dynamic.ConfigFor(config)
	config.GroupVersion = nil
	config.QPS = -1
	config.WarningHandler = rest.NoWarnings{}
	return rest.UnversionedRESTClientFor(config)
}

// getJSON decodes the answer to a GET request.
func getJSON(ctx context.Context, request *rest.Request, into any) error {
	answer, err := request.Do(ctx).Raw()
	if err != nil {
		return err
	}
	return json.Unmarshal(answer, into)
}

// updateObjects updates count objects once each. There must be at least count objects. rate is the number of
// updates per second; zero does not limit it. It returns one of the errors.
func updateObjects(ctx context.Context, kubeconfig string, count int, rate float64) error {
	client, err := newClient(kubeconfig)
	if err != nil {
		return err
	}
	var list struct {
		Items []struct {
			Metadata struct{ Namespace, Name string }
		}
	}
	request := client.Get().AbsPath(certificatesPath).Param("limit", strconv.Itoa(count))
	if err := getJSON(ctx, request, &list); err != nil {
		return fmt.Errorf("listing objects to change: %w", err)
	}
	if len(list.Items) < count {
		return fmt.Errorf("cannot change %d objects: the server has only %d", count, len(list.Items))
	}
	var limiter flowcontrol.RateLimiter
	if rate > 0 {
		limiter = flowcontrol.NewTokenBucketRateLimiter(float32(rate), 1)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	workqueue.ParallelizeUntil(ctx, 8, count, func(n int) {
		object := list.Items[n].Metadata
		// The timestamp guarantees a change, because an unchanged object causes no event.
		body := fmt.Appendf(nil, `{"metadata":{"annotations":{"platform.example.com/touched":"%d"}}}`,
			time.Now().UnixNano())
		err := client.Patch(types.MergePatchType).Throttle(limiter).AbsPath("/apis/cert-manager.io/v1/namespaces",
			object.Namespace, "certificates", object.Name).Body(body).Do(ctx).Error()
		if err != nil {
			cancel(fmt.Errorf("changing %s/%s: %w", object.Namespace, object.Name, err))
		}
	})
	return context.Cause(ctx)
}

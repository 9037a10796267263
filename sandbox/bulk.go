package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
)

// parallelWrites limits the concurrent writes. This number saturates two cores, and stays below the API
// server's limit of streams per connection.
const parallelWrites = 64

// FillOptions are the options of Fill. All fields except Seed are required.
type FillOptions struct {
	// Count objects are distributed evenly over Namespaces, which are created.
	Count      int
	Namespaces int
	Size       Size
	// Seed determines all objects, including their names.
	Seed uint64
}

// FillResult has the results of Fill.
type FillResult struct {
	// Created counts new objects, Existing counts unchanged objects that existed before.
	Created, Existing int
	// Bytes is the size of the created objects as compact JSON. It is only known for writes to etcd.
	Bytes   int64
	Elapsed time.Duration
}

// errExists means that the object exists.
var errExists = errors.New("already exists")

// writeFunc writes one object and returns its size.
type writeFunc func(ctx context.Context, id objectIdentity, c objectContent) (int, error)

// Fill writes objects to etcd, or through the API server if etcd is nil. It returns when the API server
// serves all objects.
func Fill(ctx context.Context, config *rest.Config, etcd *clientv3.Client,
	o FillOptions) (FillResult, error) {
	if o.Count < 1 || o.Namespaces < 1 {
		return FillResult{}, errors.New("count and namespaces must be at least 1")
	}
	dyn, err := unlimitedClient(config)
	if err != nil {
		return FillResult{}, err
	}
	if err := checkServed(ctx, dyn); err != nil {
		return FillResult{}, err
	}
	if err := ensureNamespaces(ctx, dyn, o); err != nil {
		return FillResult{}, err
	}
	write := writeToAPI(dyn)
	if etcd != nil {
		write = writeToEtcd(etcd, newTemplates(dyn, etcd))
	}
	result, err := writeAll(ctx, write, o)
	if err != nil {
		return result, err
	}
	// A list without a resource version waits until the watch cache has caught up with etcd.
	_, err = dyn.Resource(certificateResource).List(ctx, metav1.ListOptions{Limit: 1})
	return result, err
}

func unlimitedClient(config *rest.Config) (dynamic.Interface, error) {
	config = rest.CopyConfig(config)
	config.QPS = -1
	config.WarningHandler = rest.NoWarnings{}
	return dynamic.NewForConfig(config)
}

func ensureNamespaces(ctx context.Context, dyn dynamic.Interface, o FillOptions) error {
	namespaces := dyn.Resource(schema.GroupVersionResource{Version: "v1", Resource: "namespaces"})
	for n := range min(o.Namespaces, o.Count) {
		namespace := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1", "kind": "Namespace",
			"metadata": map[string]any{"name": namespaceName(n)},
		}}
		_, err := namespaces.Create(ctx, namespace, metav1.CreateOptions{FieldManager: specManager})
		if err != nil && !apierrors.IsAlreadyExists(err) {
			return err
		}
	}
	return nil
}

// writeAll writes objects 0 to Count-1 concurrently. The first error ends it.
func writeAll(ctx context.Context, write writeFunc, o FillOptions) (FillResult, error) {
	generator := certificates{size: o.Size}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var next, created, existing, bytes atomic.Int64
	start := time.Now()
	var running sync.WaitGroup
	for range min(parallelWrites, o.Count) {
		running.Go(func() { // ends after the last index or the first error
			for ctx.Err() == nil {
				i := int(next.Add(1)) - 1
				if i >= o.Count {
					return
				}
				id := newIdentity(o.Seed, i, o.Namespaces)
				size, err := write(ctx, id, generator.content(id))
				switch {
				case errors.Is(err, errExists):
					existing.Add(1)
				case err != nil:
					cancel(fmt.Errorf("object %d: %w", i, err))
				default:
					created.Add(1)
					bytes.Add(int64(size))
				}
			}
		})
	}
	running.Wait()
	return FillResult{
		Created:  int(created.Load()),
		Existing: int(existing.Load()),
		Bytes:    bytes.Load(),
		Elapsed:  time.Since(start),
	}, context.Cause(ctx)
}

func writeToAPI(dyn dynamic.Interface) writeFunc {
	return func(ctx context.Context, id objectIdentity, c objectContent) (int, error) {
		err := createThroughAPI(ctx, dyn, buildObject(id, c))
		if apierrors.IsAlreadyExists(err) {
			return 0, errExists
		}
		return 0, err
	}
}

// writeToEtcd writes each object in its own transaction, like the API server. Objects of one transaction
// would have the same resource version.
func writeToEtcd(etcd *clientv3.Client, ts *templates) writeFunc {
	return func(ctx context.Context, id objectIdentity, c objectContent) (int, error) {
		tmpl, err := ts.get(ctx, id, c)
		if err != nil {
			return 0, err
		}
		data, err := tmpl.encode(id, c)
		if err != nil {
			return 0, err
		}
		key := etcdKey(id.namespace, id.name)
		resp, err := etcd.Txn(ctx).
			If(clientv3.Compare(clientv3.ModRevision(key), "=", 0)).
			Then(clientv3.OpPut(key, string(data))).
			Commit()
		if err != nil {
			return 0, fmt.Errorf("etcd: %w", err)
		}
		if !resp.Succeeded {
			return 0, errExists
		}
		return len(data) - 1, nil
	}
}

var certificateResource = schema.GroupVersionResource{
	Group: "cert-manager.io", Version: "v1", Resource: "certificates",
}

const certificateKind = "Certificate"

// checkServed returns an error with a remedy if the server has no Certificates.
func checkServed(ctx context.Context, dyn dynamic.Interface) error {
	_, err := dyn.Resource(certificateResource).List(ctx, metav1.ListOptions{Limit: 1})
	if apierrors.IsNotFound(err) {
		return fmt.Errorf("the server has no %s: load cert-manager's CRDs first",
			certificateResource.GroupResource())
	}
	return err
}

func etcdKey(namespace, name string) string {
	return strings.Join([]string{"/registry", certificateResource.Group, certificateResource.Resource,
		namespace, name}, "/")
}

// Field managers of a real cluster.
const (
	specManager   = "helm"
	statusManager = "controller"
)

// buildObject combines identity and content.
func buildObject(id objectIdentity, c objectContent) *unstructured.Unstructured {
	object := &unstructured.Unstructured{Object: map[string]any{}}
	for name, value := range c.body {
		object.Object[name] = value
	}
	metadata := map[string]any{"name": id.name, "namespace": id.namespace}
	if len(c.labels) > 0 {
		metadata["labels"] = c.labels
	}
	if len(c.annotations) > 0 {
		metadata["annotations"] = c.annotations
	}
	object.Object["metadata"] = metadata
	object.SetAPIVersion(certificateResource.GroupVersion().String())
	object.SetKind(certificateKind)
	return object
}

// createThroughAPI creates an object and its status with two requests, like a tool and a controller.
func createThroughAPI(ctx context.Context, dyn dynamic.Interface, object *unstructured.Unstructured) error {
	client := dyn.Resource(certificateResource).Namespace(object.GetNamespace())
	created, err := client.Create(ctx, object, metav1.CreateOptions{FieldManager: specManager})
	if err != nil {
		return fmt.Errorf("create %s: %w", object.GetName(), err)
	}
	status, hasStatus := object.Object["status"]
	if !hasStatus {
		return nil
	}
	created.Object["status"] = status
	if _, err := client.UpdateStatus(ctx, created,
		metav1.UpdateOptions{FieldManager: statusManager}); err != nil {
		return fmt.Errorf("update status of %s: %w", object.GetName(), err)
	}
	return nil
}

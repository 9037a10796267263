package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"
	clientv3 "go.etcd.io/etcd/client/v3"
	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// maxParallelWrites saturates two cores.
const maxParallelWrites = 64

var certificateResource = schema.GroupVersionResource{
	Group: "cert-manager.io", Version: "v1", Resource: "certificates",
}

const certificateKind = "Certificate"

// Field managers of a real cluster.
const (
	specManager   = "helm"
	statusManager = "controller"
)

type fillOptions struct {
	dir string
	// count is the number of objects. They are distributed evenly over the namespaces, which fill creates.
	count, namespaces int
	size              string // small or large
	// seed determines all objects, including their names.
	seed uint64
}

func newFill() *cobra.Command {
	var o fillOptions
	c := &cobra.Command{
		Use:   "fill --dir DIR --count N",
		Short: "Write many synthetic Certificates, fast",
		Long: `Write synthetic Certificates and report the rate on stderr. The server needs
cert-manager's CRDs. The objects look like real ones: small is about 2 KB of
compact JSON, large about 10 KB.

The objects depend only on --seed. Existing objects are not changed. fill writes
directly to the sandbox's etcd, in the form in which the API server stores them.`,
		Example: `  sandbox fill --dir /tmp/box --count 50000 --namespaces 50`,
		Args:    cobra.NoArgs,
		RunE:    func(c *cobra.Command, _ []string) error { return o.run(c.Context()) },
	}
	c.Flags().StringVar(&o.dir, "dir", "", "directory of the sandbox")
	requireDir(c)
	c.Flags().IntVar(&o.count, "count", 1000, "number of objects")
	c.Flags().IntVar(&o.namespaces, "namespaces", 10,
		"number of namespaces to spread them over: team-000, team-001, …")
	c.Flags().StringVar(&o.size, "size", sizeSmall, "small or large")
	c.Flags().Uint64Var(&o.seed, "seed", 1, "determines names and contents")
	return c
}

func (o *fillOptions) run(ctx context.Context) error {
	dir := directory(o.dir)
	etcdURL, err := os.ReadFile(dir.etcdURLPath())
	if isRunning, lockErr := isLocked(dir.lockPath()); lockErr != nil || !isRunning || err != nil {
		return fmt.Errorf("no sandbox is running in %s: start one with sandbox up", dir)
	}
	config, err := clientcmd.BuildConfigFromFlags("", dir.kubeconfigPath())
	if err != nil {
		return err
	}
	config.QPS = -1 // no client-side limit
	config.WarningHandler = rest.NoWarnings{}
	api, err := dynamic.NewForConfig(config)
	if err != nil {
		return err
	}
	etcd, err := dialEtcd(string(etcdURL))
	if err != nil {
		return err
	}
	defer etcd.Close()
	return fill(ctx, api, etcd, *o)
}

// fill writes objects to etcd. It returns when the API server serves all of them.
func fill(ctx context.Context, api dynamic.Interface, etcd *clientv3.Client, o fillOptions) error {
	if o.size != sizeSmall && o.size != sizeLarge {
		return fmt.Errorf("unknown size %q: want %q or %q", o.size, sizeSmall, sizeLarge)
	}
	if o.count < 1 || o.namespaces < 1 {
		return errors.New("count and namespaces must be at least 1")
	}
	_, err := api.Resource(certificateResource).List(ctx, metav1.ListOptions{Limit: 1})
	if apierrors.IsNotFound(err) {
		return fmt.Errorf("the server has no %s: load cert-manager's CRDs first", certificateResource.GroupResource())
	}
	if err != nil {
		return err
	}
	if err := ensureNamespaces(ctx, api, o); err != nil {
		return err
	}
	start := time.Now()
	created, err := writeAll(ctx, etcd, o)
	if err != nil {
		return err
	}
	elapsed := time.Since(start)
	fmt.Fprintf(os.Stderr, "wrote %d Certificates in %s (%.0f/s); %d existed already\n", created,
		elapsed.Round(10*time.Millisecond), float64(created)/elapsed.Seconds(), o.count-created)
	// A list without a resource version waits until the watch cache has caught up with etcd.
	_, err = api.Resource(certificateResource).List(ctx, metav1.ListOptions{Limit: 1})
	return err
}

func ensureNamespaces(ctx context.Context, api dynamic.Interface, o fillOptions) error {
	namespaces := api.Resource(schema.GroupVersionResource{Version: "v1", Resource: "namespaces"})
	for n := range min(o.namespaces, o.count) {
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

// writeAll writes objects 0 to count-1 concurrently, until the first error. created counts the objects that
// did not exist.
func writeAll(ctx context.Context, etcd *clientv3.Client, o fillOptions) (created int, err error) {
	var written atomic.Int64
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(maxParallelWrites)
	for i := range o.count {
		if ctx.Err() != nil {
			break
		}
		group.Go(func() error {
			id := newIdentity(o.seed, i, o.namespaces)
			isNew, err := writeToEtcd(ctx, etcd, id, newCertificateContent(id, o.size))
			if err != nil {
				return fmt.Errorf("object %d: %w", i, err)
			}
			if isNew {
				written.Add(1)
			}
			return nil
		})
	}
	err = group.Wait()
	return int(written.Load()), err
}

// writeToEtcd writes an object in its own transaction, because objects of one transaction have the same
// resource version. It returns false if the object exists.
func writeToEtcd(ctx context.Context, etcd *clientv3.Client, id objectIdentity,
	content objectContent) (isNew bool, err error) {
	data, err := json.Marshal(newStoredObject(id, content))
	if err != nil {
		return false, err
	}
	key := etcdKey(id.namespace, id.name)
	response, err := etcd.Txn(ctx).If(clientv3.Compare(clientv3.ModRevision(key), "=", 0)).
		Then(clientv3.OpPut(key, string(data)+"\n")).Commit()
	if err != nil {
		return false, fmt.Errorf("etcd: %w", err)
	}
	return response.Succeeded, nil
}

func etcdKey(namespace, name string) string {
	return strings.Join([]string{"/registry", certificateResource.Group, certificateResource.Resource,
		namespace, name}, "/")
}

func buildObject(id objectIdentity, c objectContent) *unstructured.Unstructured {
	object := &unstructured.Unstructured{Object: maps.Clone(c.body)}
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

// newStoredObject returns an object as the API server stores it, with the managedFields of a tool that
// created it and of a controller that wrote its status.
func newStoredObject(id objectIdentity, c objectContent) map[string]any {
	object := buildObject(id, c).Object
	metadata := object["metadata"].(map[string]any)
	metadata["uid"], metadata["creationTimestamp"] = id.uid, timestamp(id.created)
	metadata["generation"] = int64(1)
	manager := func(name, subresource string, delay time.Duration, fields map[string]any) map[string]any {
		entry := map[string]any{"manager": name, "operation": "Update",
			"apiVersion": certificateResource.GroupVersion().String(),
			"time":       timestamp(id.created.Add(delay)), "fieldsType": "FieldsV1", "fieldsV1": fields}
		if subresource != "" {
			entry["subresource"] = subresource
		}
		return entry
	}
	metadata["managedFields"] = []any{
		manager(specManager, "", 0, map[string]any{
			"f:metadata": map[string]any{"f:labels": ownedFields(c.labels),
				"f:annotations": ownedFields(c.annotations)},
			"f:spec": ownedFields(object["spec"])}),
		manager(statusManager, "status", 7*time.Second, map[string]any{"f:status": ownedFields(object["status"])}),
	}
	return object
}

// ownedFields returns the FieldsV1 of a value. It treats all lists of objects as conditions.
func ownedFields(value any) map[string]any {
	fields := map[string]any{}
	switch value := value.(type) {
	case map[string]any:
		fields["."] = map[string]any{}
		for name, field := range value {
			fields["f:"+name] = ownedFields(field)
		}
	case []any:
		for _, element := range value {
			if condition, ok := element.(map[string]any); ok {
				fields["."] = map[string]any{}
				fields[fmt.Sprintf(`k:{"type":%q}`, condition["type"])] = ownedFields(condition)
			}
		}
	}
	return fields
}

package controllerruntime

import (
	"cmp"
	"context"
	"fmt"
	"reflect"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// NewClient is a client.NewClientFunc: pass it as ctrl.Options.NewClient. It returns client.New, unless the
// reader is a *Cache. Then it rejects writes of reduced objects with a *ReducedError, also writes that an API
// server would accept: see ReducedAnnotation. Of merge patches these are the ones that may replace a value of
// which the cache drops a part: a list, all annotations, a map with $retainKeys, or a map of which the patch
// removes keys and no key stays unchanged (TestReplacedMaps). It does not check JSON patches. It warns once
// for a kind that is applied although its cached objects lack managedFields.
//
// With client.CacheOptions.EnableReadYourWritesConsistency, reads from the cache wait until it shows all
// writes of the client that began before the read (TestReadYourWrites), in every form and in all namespaces
// and shards. After a write to an object that the cache does not select, they wait one to three seconds, and
// six on an idle server (TestReadYourWritesOfOtherObjects). Reads do not wait for a failed write, although
// the server may have executed it. A sharded informer rejects the handler of controller-runtime's client,
// which would never see a deletion in another shard.
func NewClient(config *rest.Config, options client.Options) (client.Client, error) {
	c, ok := ptr.Deref(options.Cache, client.CacheOptions{}).Reader.(*Cache)
	if !ok {
		return client.New(config, options)
	}
	consistent := isTrue(options.Cache, "EnableReadYourWritesConsistency")
	if consistent {
		from := *options.Cache
		reflect.ValueOf(&from).Elem().FieldByName("EnableReadYourWritesConsistency").SetZero()
		options.Cache = &from
		consistent = !ptr.Deref(options.DryRun, false) // it changes nothing that a read could wait for
	}
	return newCacheClient(config, options, c, consistent)
}

// newCacheClient returns a client that reads from c. If it is consistent, it changes options.Cache.
func newCacheClient(config *rest.Config, options client.Options, c *Cache, consistent bool) (client.Client,
	error) {
	var written *writeLog
	if consistent {
		written = newWriteLog(c)
		options.Cache.Reader = &consistentReader{c, written}
	}
	upstream, err := client.New(config, options)
	if err != nil {
		return nil, err
	}
	return &cacheClient{Client: upstream, cache: c, writeLog: written}, nil
}

// isTrue reports whether a struct has a field with this name that is true, or points to true. Options have
// such fields only in later versions of controller-runtime.
func isTrue(options any, field string) bool {
	f := reflect.ValueOf(options).Elem().FieldByName(field)
	for f.IsValid() && f.Kind() == reflect.Pointer {
		f = f.Elem()
	}
	return f.IsValid() && f.Bool()
}

func ignoresWrites(options any) bool { return isTrue(options, "DisableReadYourWritesConsistency") }

// consistentReader waits for writes before it reads the cache.
type consistentReader struct {
	*Cache
	writeLog *writeLog
}

func (r *consistentReader) Get(ctx context.Context, key client.ObjectKey, out client.Object,
	opts ...client.GetOption) error {
	if len(opts) > 0 && ignoresWrites((&client.GetOptions{}).ApplyOptions(opts)) {
		return r.Cache.Get(ctx, key, out, opts...)
	}
	return r.get(ctx, r.writeLog, key, out, opts...)
}

func (r *consistentReader) List(ctx context.Context, list client.ObjectList,
	opts ...client.ListOption) error {
	options := (&client.ListOptions{}).ApplyOptions(opts)
	if ignoresWrites(options) {
		return r.list(ctx, nil, list, options)
	}
	return r.list(ctx, r.writeLog, list, options)
}

// cacheClient rejects writes of reduced objects before the server does. It records the other writes if its
// reads use a consistentReader.
type cacheClient struct {
	client.Client
	cache    *Cache
	writeLog *writeLog // nil if reads do not wait for writes
	warned   sync.Map  // the kinds of which warnOfExtraction has warned
}

// write checks, makes and records a write of an object or apply configuration. answer is the one that has the
// resource version afterwards. The verb of a patch, which checkPatch has checked, is empty.
func (c *cacheClient) write(ctx context.Context, verb string, written, options, answer any,
	send func() error) error {
	object, err := objectOf(written)
	if err != nil {
		return err
	}
	if verb == "apply" {
		c.warnOfExtraction(ctx, object)
	}
	if verb != "" && IsReduced(object) {
		return c.reducedError(verb, object, removesFields)
	}
	start := write{deletes: removesObject(object), uid: object.GetUID()}
	return c.record(ctx, object, options, start, answer, send)
}

// record makes and records a write. answer is nil if the server does not return a resource version.
func (c *cacheClient) record(ctx context.Context, object client.Object, options any, start write, answer any,
	send func() error) error {
	dryRun := reflect.ValueOf(options).Elem().FieldByName("DryRun")
	if c.writeLog == nil || ignoresWrites(options) || dryRun.IsValid() && dryRun.Len() > 0 {
		return send()
	}
	gk, key, err := c.targetOf(object)
	if err != nil {
		return err
	}
	start.key = key
	w, succeeded := c.writeLog.begin(ctx, gk, start), false
	defer func() { c.writeLog.end(gk, w, succeeded) }() // also after a panic, or reads would wait for ever
	if err := send(); err != nil {
		return err
	}
	version := ""
	if answer != nil {
		if after, err := objectOf(answer); err == nil && !removesObject(after) {
			version = after.GetResourceVersion()
		}
	}
	_, key, err = c.targetOf(object) // the server may have generated the name
	c.writeLog.mu.Lock()             // reads compare keys of running writes
	w.key, w.version, succeeded = key, version, err == nil
	c.writeLog.mu.Unlock()
	return err
}

// removesObject reports whether a server removes an object in this state: it is terminating and has no
// finalizers. The server then answers with the version before the write.
func removesObject(object client.Object) bool {
	return object.GetDeletionTimestamp() != nil && len(object.GetFinalizers()) == 0 &&
		ptr.Deref(object.GetDeletionGracePeriodSeconds(), 0) == 0
}

// objectOf returns an object, or the content of an apply configuration.
func objectOf(written any) (client.Object, error) {
	if object, ok := written.(client.Object); ok {
		return object, nil
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(written)
	if err != nil {
		return nil, fmt.Errorf("read the %T: %w", written, err)
	}
	return &unstructured.Unstructured{Object: content}, nil
}

// targetOf returns the kind and the key of an object. As in the cache, the key of an object without a
// namespace has none: the client ignores a namespace that the caller has set.
func (c *cacheClient) targetOf(object client.Object) (schema.GroupKind, types.NamespacedName, error) {
	key := client.ObjectKeyFromObject(object)
	gvk, err := c.GroupVersionKindFor(object)
	if err == nil && key.Namespace != "" {
		var namespaced bool
		if namespaced, err = c.IsObjectNamespaced(object); !namespaced {
			key.Namespace = ""
		}
	}
	return gvk.GroupKind(), key, err
}

func (c *cacheClient) Create(ctx context.Context, object client.Object, opts ...client.CreateOption) error {
	return c.write(ctx, "create", object, (&client.CreateOptions{}).ApplyOptions(opts), object,
		func() error { return c.Client.Create(ctx, object, opts...) })
}

func (c *cacheClient) Update(ctx context.Context, object client.Object, opts ...client.UpdateOption) error {
	return c.write(ctx, "update", object, (&client.UpdateOptions{}).ApplyOptions(opts), object,
		func() error { return c.Client.Update(ctx, object, opts...) })
}

// Patch implements client.Writer. Afterwards the object is whole: the server returns all fields.
func (c *cacheClient) Patch(ctx context.Context, object client.Object, patch client.Patch,
	opts ...client.PatchOption) error {
	if err := c.checkPatch(object, patch); err != nil {
		return err
	}
	return c.write(ctx, "", object, (&client.PatchOptions{}).ApplyOptions(opts), object,
		func() error { return c.Client.Patch(ctx, object, patch, opts...) })
}

func (c *cacheClient) Apply(ctx context.Context, object runtime.ApplyConfiguration,
	opts ...client.ApplyOption) error {
	return c.write(ctx, "apply", object, (&client.ApplyOptions{}).ApplyOptions(opts), object,
		func() error { return c.Client.Apply(ctx, object, opts...) })
}

// Delete implements client.Writer. The server does not return the resource version of a deletion.
func (c *cacheClient) Delete(ctx context.Context, object client.Object, opts ...client.DeleteOption) error {
	options := (&client.DeleteOptions{}).ApplyOptions(opts)
	uid := object.GetUID()
	if p := options.Preconditions; p != nil && p.UID != nil {
		uid = *p.UID
	}
	return c.record(ctx, object, options, write{deletes: true, uid: uid}, nil,
		func() error { return c.Client.Delete(ctx, object, opts...) })
}

func (c *cacheClient) DeleteAllOf(ctx context.Context, object client.Object,
	opts ...client.DeleteAllOfOption) error {
	return c.record(ctx, object, &(&client.DeleteAllOfOptions{}).ApplyOptions(opts).DeleteOptions,
		write{affectsUnknownObjects: true}, nil,
		func() error { return c.Client.DeleteAllOf(ctx, object, opts...) })
}

func (c *cacheClient) Status() client.SubResourceWriter { return c.SubResource("status") }

func (c *cacheClient) SubResource(name string) client.SubResourceClient {
	return &cacheSubresource{c.Client.SubResource(name), c}
}

// cacheSubresource checks and records the writes to a subresource. Create is neither: it sends only the name
// of the object, and its result is another object, such as an eviction or a token.
type cacheSubresource struct {
	client.SubResourceClient
	client *cacheClient
}

func (s *cacheSubresource) Update(ctx context.Context, object client.Object,
	opts ...client.SubResourceUpdateOption) error {
	options := (&client.SubResourceUpdateOptions{}).ApplyOptions(opts)
	sent := cmp.Or(options.SubResourceBody, object)
	if IsReduced(sent) {
		return s.client.reducedError("update", sent, removesFields)
	}
	return s.client.write(ctx, "", object, options, sent,
		func() error { return s.SubResourceClient.Update(ctx, object, opts...) })
}

func (s *cacheSubresource) Patch(ctx context.Context, object client.Object, patch client.Patch,
	opts ...client.SubResourcePatchOption) error {
	options := (&client.SubResourcePatchOptions{}).ApplyOptions(opts)
	sent := cmp.Or(options.SubResourceBody, object)
	if err := s.client.checkPatch(sent, patch); err != nil {
		return err
	}
	return s.client.write(ctx, "", object, options, sent,
		func() error { return s.SubResourceClient.Patch(ctx, object, patch, opts...) })
}

func (s *cacheSubresource) Apply(ctx context.Context, object runtime.ApplyConfiguration,
	opts ...client.SubResourceApplyOption) error {
	options := (&client.SubResourceApplyOptions{}).ApplyOpts(opts)
	return s.client.write(ctx, "apply", object, options, cmp.Or(options.SubResourceBody, object),
		func() error { return s.SubResourceClient.Apply(ctx, object, opts...) })
}

// checkHandler returns an error if a sharded informer gets the handler with which controller-runtime's client
// waits for its writes. That client would wait forever for deletions in other shards.
func (r *resource) checkHandler(handler any) error {
	t := reflect.TypeOf(handler)
	if !r.sharded || t.Kind() != reflect.Pointer || !strings.HasSuffix(t.Elem().PkgPath(), "/consistencyhandler") {
		return nil
	}
	return fmt.Errorf("%s: EnableReadYourWritesConsistency with a sharded cache needs controllerruntime.NewClient: set it as ctrl.Options.NewClient", r.key.gvk)
}

package controllerruntime

import (
	"cmp"
	"context"
	"fmt"
	"reflect"
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// NewClient is a client.NewClientFunc: pass it as ctrl.Options.NewClient. It returns client.New, unless the
// reader is a *Cache. Then it rejects writes of reduced objects with a *ReducedError, also those that an API
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
	if options.Cache == nil {
		return client.New(config, options)
	}
	c, ok := options.Cache.Reader.(*Cache)
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
	if len(opts) == 0 || !ignoresWrites((&client.GetOptions{}).ApplyOptions(opts)) {
		if err := r.writeLog.awaitGet(ctx, key, out); err != nil {
			return err
		}
	}
	return r.Cache.Get(ctx, key, out, opts...)
}

func (r *consistentReader) List(ctx context.Context, list client.ObjectList,
	opts ...client.ListOption) error {
	if options := (&client.ListOptions{}).ApplyOptions(opts); !ignoresWrites(options) {
		if err := r.writeLog.awaitList(ctx, list, options); err != nil {
			return err
		}
	}
	return r.Cache.List(ctx, list, opts...)
}

// cacheClient rejects writes of reduced objects before the server does. It records the other writes if its
// reads use a consistentReader.
type cacheClient struct {
	client.Client
	cache    *Cache
	writeLog *writeLog // nil if reads do not wait for writes
	warned   sync.Map  // the kinds of which warnOfExtraction has warned
}

var _ client.Client = (*cacheClient)(nil)

// write checks, makes and records a write of an object. answer is the object or apply configuration that has
// the resource version afterwards. The verb of a patch, which checkPatch has checked, is empty.
func (c *cacheClient) write(verb string, object, options, answer any, send func() error) error {
	if verb != "" && isReduced(object) {
		return c.reducedError(verb, object, removesFields)
	}
	start := write{}
	if o, ok := object.(client.Object); ok && removesObject(o) {
		start.deletes, start.uid = true, o.GetUID()
	}
	return c.record(object, options, start, answer, send)
}

// record makes and records a write. answer is nil if the server does not return a resource version.
func (c *cacheClient) record(object, options any, start write, answer any, send func() error) error {
	if c.writeLog == nil || ignoresWrites(options) || isDryRun(options) {
		return send()
	}
	gk, key, err := targetOf(c, object)
	if err != nil {
		return err
	}
	start.key = key
	w, succeeded := c.writeLog.begin(gk, start), false
	defer func() { c.writeLog.end(gk, w, succeeded) }() // also after a panic, or reads would wait for ever
	if err := send(); err != nil {
		return err
	}
	version := ""
	if answer != nil && !removesObject(answer) {
		version = versionOf(answer)
	}
	_, key, err = targetOf(c, object) // the server may have generated the name
	c.writeLog.mu.Lock()              // reads compare keys of running writes
	w.key, w.version, succeeded = key, version, err == nil
	c.writeLog.mu.Unlock()
	return err
}

// removesObject reports whether a server removes an object or apply configuration in this state: it is
// terminating and has no finalizers. The server then answers with the version before the write.
func removesObject(object any) bool {
	if o, ok := object.(client.Object); ok {
		return o.GetDeletionTimestamp() != nil && len(o.GetFinalizers()) == 0 &&
			ptr.Deref(o.GetDeletionGracePeriodSeconds(), 0) == 0
	}
	return applyField[*metav1.Time](object, "DeletionTimestamp") != nil &&
		len(applyField[[]string](object, "Finalizers")) == 0 &&
		ptr.Deref(applyField[*int64](object, "DeletionGracePeriodSeconds"), 0) == 0
}

func isDryRun(options any) bool {
	f := reflect.ValueOf(options).Elem().FieldByName("DryRun")
	return f.IsValid() && f.Len() > 0
}

type appliedObject interface {
	GetName() *string
	GetNamespace() *string
	GetKind() *string
	GetAPIVersion() *string
}

// targetOf returns the kind and the key of an object or apply configuration. As in the cache, the key of an
// object without a namespace has none: the client ignores a namespace that the caller has set.
func targetOf(c client.Client, object any) (schema.GroupKind, types.NamespacedName, error) {
	var key types.NamespacedName
	gvk, err := kindOf(c, object)
	if err != nil {
		return schema.GroupKind{}, key, err
	}
	switch o := object.(type) {
	case client.Object:
		key = client.ObjectKeyFromObject(o)
	case appliedObject:
		key = types.NamespacedName{Namespace: ptr.Deref(o.GetNamespace(), ""), Name: ptr.Deref(o.GetName(), "")}
	}
	if key.Namespace != "" {
		namespaced, err := apiutil.IsGVKNamespaced(gvk, c.RESTMapper())
		if err != nil {
			return schema.GroupKind{}, key, err
		}
		if !namespaced {
			key.Namespace = ""
		}
	}
	return gvk.GroupKind(), key, nil
}

// kindOf returns the kind of an object or apply configuration.
func kindOf(c client.Client, object any) (schema.GroupVersionKind, error) {
	switch o := object.(type) {
	case client.Object:
		return apiutil.GVKForObject(o, c.Scheme())
	case appliedObject:
		return schema.FromAPIVersionAndKind(ptr.Deref(o.GetAPIVersion(), ""), ptr.Deref(o.GetKind(), "")), nil
	}
	return schema.GroupVersionKind{}, fmt.Errorf("find the type of %T: it is neither an object nor a generated apply configuration", object)
}

// versionOf returns the resource version of an object or apply configuration; empty if it has none.
func versionOf(object any) string {
	if o, ok := object.(interface{ GetResourceVersion() string }); ok {
		return o.GetResourceVersion()
	}
	return ptr.Deref(applyField[*string](object, "ResourceVersion"), "")
}

// applyField returns a field of an apply configuration, or zero if it has none of this type.
func applyField[T any](object any, name string) (value T) {
	v := reflect.Indirect(reflect.ValueOf(object))
	if v.Kind() != reflect.Struct {
		return value
	}
	field, ok := v.Type().FieldByName(name)
	if !ok {
		return value
	}
	if f, err := v.FieldByIndexErr(field.Index); err == nil { // err: an embedded pointer is nil
		value, _ = f.Interface().(T)
	}
	return value
}

func (c *cacheClient) Create(ctx context.Context, object client.Object, opts ...client.CreateOption) error {
	return c.write("create", object, (&client.CreateOptions{}).ApplyOptions(opts), object,
		func() error { return c.Client.Create(ctx, object, opts...) })
}

func (c *cacheClient) Update(ctx context.Context, object client.Object, opts ...client.UpdateOption) error {
	return c.write("update", object, (&client.UpdateOptions{}).ApplyOptions(opts), object,
		func() error { return c.Client.Update(ctx, object, opts...) })
}

// Patch implements client.Writer. Afterwards the object is whole: the server returns all fields.
func (c *cacheClient) Patch(ctx context.Context, object client.Object, patch client.Patch,
	opts ...client.PatchOption) error {
	if err := c.checkPatch(object, patch); err != nil {
		return err
	}
	return c.write("", object, (&client.PatchOptions{}).ApplyOptions(opts), object,
		func() error { return c.Client.Patch(ctx, object, patch, opts...) })
}

func (c *cacheClient) Apply(ctx context.Context, object runtime.ApplyConfiguration,
	opts ...client.ApplyOption) error {
	c.warnOfExtraction(ctx, object)
	return c.write("apply", object, (&client.ApplyOptions{}).ApplyOptions(opts), object,
		func() error { return c.Client.Apply(ctx, object, opts...) })
}

// Delete implements client.Writer. The server does not return the resource version of a deletion.
func (c *cacheClient) Delete(ctx context.Context, object client.Object, opts ...client.DeleteOption) error {
	options := (&client.DeleteOptions{}).ApplyOptions(opts)
	uid := object.GetUID()
	if p := options.Preconditions; p != nil && p.UID != nil {
		uid = *p.UID
	}
	return c.record(object, options, write{deletes: true, uid: uid}, nil,
		func() error { return c.Client.Delete(ctx, object, opts...) })
}

func (c *cacheClient) DeleteAllOf(ctx context.Context, object client.Object,
	opts ...client.DeleteAllOfOption) error {
	return c.record(object, &(&client.DeleteAllOfOptions{}).ApplyOptions(opts).DeleteOptions,
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
	if isReduced(sent) {
		return s.client.reducedError("update", sent, removesFields)
	}
	return s.client.write("", object, options, sent,
		func() error { return s.SubResourceClient.Update(ctx, object, opts...) })
}

func (s *cacheSubresource) Patch(ctx context.Context, object client.Object, patch client.Patch,
	opts ...client.SubResourcePatchOption) error {
	options := (&client.SubResourcePatchOptions{}).ApplyOptions(opts)
	sent := cmp.Or(options.SubResourceBody, object)
	if err := s.client.checkPatch(sent, patch); err != nil {
		return err
	}
	return s.client.write("", object, options, sent,
		func() error { return s.SubResourceClient.Patch(ctx, object, patch, opts...) })
}

func (s *cacheSubresource) Apply(ctx context.Context, object runtime.ApplyConfiguration,
	opts ...client.SubResourceApplyOption) error {
	s.client.warnOfExtraction(ctx, object)
	options := (&client.SubResourceApplyOptions{}).ApplyOpts(opts)
	return s.client.write("apply", object, options, cmp.Or(options.SubResourceBody, object),
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

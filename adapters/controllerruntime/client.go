package controllerruntime

import (
	"cmp"
	"context"
	"fmt"
	"reflect"
	"strings"
	"sync"

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
func NewClient(config *rest.Config, options client.Options) (client.Client, error) {
	upstream, err := client.New(config, options)
	if err != nil || options.Cache == nil {
		return upstream, err
	}
	if c, ok := options.Cache.Reader.(*Cache); ok {
		return &cacheClient{Client: upstream, cache: c}, nil
	}
	return upstream, nil
}

// cacheClient rejects writes of reduced objects before the server does.
type cacheClient struct {
	client.Client
	cache  *Cache
	warned sync.Map // the kinds of which warnOfExtraction has warned
}

var _ client.Client = (*cacheClient)(nil)

// checkWhole returns a *ReducedError for a reduced object or apply configuration.
func (c *cacheClient) checkWhole(verb string, object any) error {
	if isReduced(object) {
		return c.reducedError(verb, object, removesFields)
	}
	return nil
}

type appliedObject interface {
	GetName() *string
	GetNamespace() *string
	GetKind() *string
	GetAPIVersion() *string
}

// targetOf returns the kind and the key of an object or apply configuration.
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
	if err := c.checkWhole("create", object); err != nil {
		return err
	}
	return c.Client.Create(ctx, object, opts...)
}

func (c *cacheClient) Update(ctx context.Context, object client.Object, opts ...client.UpdateOption) error {
	if err := c.checkWhole("update", object); err != nil {
		return err
	}
	return c.Client.Update(ctx, object, opts...)
}

// Patch implements client.Writer. Afterwards the object is whole: the server returns all fields.
func (c *cacheClient) Patch(ctx context.Context, object client.Object, patch client.Patch,
	opts ...client.PatchOption) error {
	if err := c.checkPatch(object, patch); err != nil {
		return err
	}
	return c.Client.Patch(ctx, object, patch, opts...)
}

func (c *cacheClient) Apply(ctx context.Context, object runtime.ApplyConfiguration,
	opts ...client.ApplyOption) error {
	c.warnOfExtraction(ctx, object)
	if err := c.checkWhole("apply", object); err != nil {
		return err
	}
	return c.Client.Apply(ctx, object, opts...)
}

func (c *cacheClient) Status() client.SubResourceWriter { return c.SubResource("status") }

func (c *cacheClient) SubResource(name string) client.SubResourceClient {
	return &cacheSubresource{c.Client.SubResource(name), c}
}

// cacheSubresource checks the writes to a subresource. It does not check Create, which sends only the name of
// the object.
type cacheSubresource struct {
	client.SubResourceClient
	client *cacheClient
}

func (s *cacheSubresource) Update(ctx context.Context, object client.Object,
	opts ...client.SubResourceUpdateOption) error {
	options := (&client.SubResourceUpdateOptions{}).ApplyOptions(opts)
	if err := s.client.checkWhole("update", cmp.Or(options.SubResourceBody, object)); err != nil {
		return err
	}
	return s.SubResourceClient.Update(ctx, object, opts...)
}

func (s *cacheSubresource) Patch(ctx context.Context, object client.Object, patch client.Patch,
	opts ...client.SubResourcePatchOption) error {
	options := (&client.SubResourcePatchOptions{}).ApplyOptions(opts)
	if err := s.client.checkPatch(cmp.Or(options.SubResourceBody, object), patch); err != nil {
		return err
	}
	return s.SubResourceClient.Patch(ctx, object, patch, opts...)
}

func (s *cacheSubresource) Apply(ctx context.Context, object runtime.ApplyConfiguration,
	opts ...client.SubResourceApplyOption) error {
	s.client.warnOfExtraction(ctx, object)
	if err := s.client.checkWhole("apply", object); err != nil {
		return err
	}
	return s.SubResourceClient.Apply(ctx, object, opts...)
}

// checkHandler returns an error if a sharded informer gets the handler with which controller-runtime's client
// waits for its writes. That client would wait forever for deletions in other shards.
func (r *resource) checkHandler(handler any) error {
	t := reflect.TypeOf(handler)
	if !r.sharded || t.Kind() != reflect.Pointer || !strings.HasSuffix(t.Elem().PkgPath(), "/consistencyhandler") {
		return nil
	}
	return fmt.Errorf("%s: EnableReadYourWritesConsistency does not work with a sharded cache, which does not see writes in other shards: unset it, and wait with Factory().WaitForVersion", r.key.gvk)
}

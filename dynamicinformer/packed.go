package dynamicinformer

import (
	"context"
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/crdcache/crdcache/internal/codec"
	"github.com/crdcache/crdcache/internal/packed"
)

// packedSource lists and watches a type, or one namespace of it, as packed objects: lists are *packed.List, and the
// objects of events *packed.Object. What is no object (a Status, a table) comes as the dynamic client has it.
type packedSource interface {
	List(ctx context.Context, options metav1.ListOptions) (runtime.Object, error)
	Watch(ctx context.Context, options metav1.ListOptions) (watch.Interface, error)
}

// newPackedSource returns a source of gvr in a namespace or (empty) all. With a client of NewClient nothing is
// decoded; what another one decodes is packed when it arrives. packer says what to leave out. With metadata only
// the metadata is asked for, or kept.
func newPackedSource(from dynamic.Interface, gvr schema.GroupVersionResource, namespace string, packer *packed.Packer, metadata bool) (packedSource, error) {
	if problems := rest.IsValidPathSegmentName(namespace); len(problems) > 0 {
		return nil, fmt.Errorf("invalid namespace %q: %v", namespace, problems)
	}
	if own, ok := from.(*client); ok {
		return own.packed(gvr, namespace, packer, metadata)
	}
	resource := dynamic.ResourceInterface(from.Resource(gvr))
	if namespace != "" {
		resource = from.Resource(gvr).Namespace(namespace)
	}
	return &packingSource{resource: resource, packer: packer, metadata: metadata}, nil
}

// metadataContent asks the server for the metadata of objects alone.
const metadataContent = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"

// packed returns a source of packed objects.
func (c *client) packed(gvr schema.GroupVersionResource, namespace string, packer *packed.Packer, metadata bool) (packedSource, error) {
	config := rest.CopyConfig(c.config)
	config.NegotiatedSerializer = codec.WrapPacked(config.NegotiatedSerializer, packer)
	config.ContentType, config.AcceptContentTypes = runtime.ContentTypeJSON, runtime.ContentTypeJSON
	if metadata {
		config.AcceptContentTypes = metadataContent
	}
	requests, err := c.rest(config)
	if err != nil {
		return nil, err
	}
	s := &directSource{requests: requests, packer: packer, path: apiPath(gvr, namespace)}
	resource := dynamic.ResourceInterface(dynamic.New(requests).Resource(gvr))
	if namespace != "" {
		resource = dynamic.New(requests).Resource(gvr).Namespace(namespace)
	}
	s.decoding = &packingSource{resource: resource, packer: packer}
	return s, nil
}

// apiPath is the path of a type on API servers.
func apiPath(gvr schema.GroupVersionResource, namespace string) []string {
	path := []string{"api"}
	if gvr.Group != "" {
		path = []string{"apis", gvr.Group}
	}
	path = append(path, gvr.Version)
	if namespace != "" {
		path = append(path, "namespaces", namespace)
	}
	return append(path, gvr.Resource)
}

// directSource packs objects from the bytes of responses.
type directSource struct {
	requests rest.Interface
	path     []string
	packer   *packed.Packer
	// decoding is for responses that are not of the usual form.
	decoding packedSource
}

func (s *directSource) request(options *metav1.ListOptions) *rest.Request {
	return s.requests.Get().AbsPath(s.path...).SpecificallyVersionedParams(options, metav1.ParameterCodec, schema.GroupVersion{Version: "v1"})
}

// List implements packedSource. It packs each item as it comes, so that the whole response is never in memory.
func (s *directSource) List(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
	body, err := s.request(&options).Stream(ctx)
	if err != nil {
		if utilnet.IsConnectionReset(err) || utilnet.IsProbableEOF(err) || utilnet.IsHTTP2ConnectionLost(err) {
			return s.decoding.List(ctx, options) // which tries again, unlike Stream
		}
		return nil, err
	}
	defer body.Close()
	list, err := codec.ReadList(body, s.packer)
	switch {
	case errors.Is(err, codec.ErrUnusual):
		return s.decoding.List(ctx, options)
	case err != nil:
		return nil, fmt.Errorf("reading the list: %w", err)
	}
	return list, nil
}

// Watch implements packedSource.
func (s *directSource) Watch(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	options.Watch = true
	return s.request(&options).Watch(ctx)
}

// packingSource packs what a dynamic client has decoded.
type packingSource struct {
	resource dynamic.ResourceInterface
	packer   *packed.Packer
	metadata bool
}

// List implements packedSource.
func (s *packingSource) List(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
	decoded, err := s.resource.List(ctx, options)
	if err != nil {
		return nil, err
	}
	if isTable(decoded) {
		return decoded, nil
	}
	list := &packed.List{Items: make([]*packed.Object, len(decoded.Items))}
	for i := range decoded.Items {
		// Not the address in the slice, which would keep all of it alive.
		u := decoded.Items[i]
		if list.Items[i], err = s.packer.FromUnstructured(s.reduced(&u)); err != nil {
			return nil, err
		}
	}
	list.APIVersion, list.Kind = decoded.GetAPIVersion(), decoded.GetKind()
	list.ResourceVersion, list.Continue = decoded.GetResourceVersion(), decoded.GetContinue()
	list.SelfLink, list.RemainingItemCount = decoded.GetSelfLink(), decoded.GetRemainingItemCount()
	return list, nil
}

// Watch implements packedSource.
func (s *packingSource) Watch(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	w, err := s.resource.Watch(ctx, options)
	if err != nil {
		return nil, err
	}
	return watch.Filter(w, func(event watch.Event) (watch.Event, bool) {
		u, ok := event.Object.(*unstructured.Unstructured)
		if !ok || isTable(u) {
			return event, true
		}
		if object, err := s.packer.FromUnstructured(s.reduced(u)); err == nil {
			event.Object = object
		}
		return event, true
	}), nil
}

// reduced is the object without its body where only metadata is wanted.
func (s *packingSource) reduced(u *unstructured.Unstructured) *unstructured.Unstructured {
	if !s.metadata || u == nil {
		return u
	}
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": metav1.SchemeGroupVersion.String(), "kind": "PartialObjectMetadata", "metadata": u.Object["metadata"],
	}}
}

// isTable reports whether something is a table, which the reflector refuses by its Go type.
func isTable(object runtime.Object) bool {
	gvk := object.GetObjectKind().GroupVersionKind()
	return gvk.Kind == "Table" && gvk.Group == metav1.GroupName
}

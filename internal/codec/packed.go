package codec

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crdcache/crdcache/internal/packed"
)

// WrapPacked returns the serializer of dynamic.ConfigFor as informers want it: the objects of watches are
// *packed.Object. All else (Status, tables, requests that are no watches) is what stock makes of it.
//
// With a feed, which is for one watch, that brings the events whose objects are packed. Without one (nil) client-go does,
// and the result is safe for concurrent use if stock is.
func WrapPacked(stock runtime.NegotiatedSerializer, packer *packed.Packer, feed *Feed) runtime.NegotiatedSerializer {
	return &packedSerializer{NegotiatedSerializer: stock, packer: packer, feed: feed}
}

// packedSerializer is the wrapped one for watches.
type packedSerializer struct {
	runtime.NegotiatedSerializer
	packer *packed.Packer
	feed   *Feed
}

// SupportedMediaTypes implements runtime.NegotiatedSerializer. client-go asks once for each watch, and uses what
// it gets for this watch alone; so the framer and the decoders of the JSON of a watch can know of each other.
func (p *packedSerializer) SupportedMediaTypes() []runtime.SerializerInfo {
	infos := append([]runtime.SerializerInfo(nil), p.NegotiatedSerializer.SupportedMediaTypes()...)
	for i := range infos {
		info := &infos[i]
		if info.StreamSerializer == nil {
			continue
		}
		if info.MediaType != runtime.ContentTypeJSON {
			info.Serializer = &packingSerializer{Serializer: info.Serializer, packer: p.packer}
			continue
		}
		s := newStream(*info, p.packer, p.feed)
		inner := *info.StreamSerializer
		inner.Serializer, info.Serializer = s.decoders()
		inner.Framer = &streamFramer{Framer: s.framer, stream: s}
		info.StreamSerializer = &inner
	}
	return infos
}

// packingSerializer packs what the serializer that it holds decodes.
type packingSerializer struct {
	runtime.Serializer
	packer *packed.Packer
}

// Decode implements runtime.Decoder.
func (p *packingSerializer) Decode(data []byte, defaults *schema.GroupVersionKind, into runtime.Object) (runtime.Object, *schema.GroupVersionKind, error) {
	object, gvk, err := p.Serializer.Decode(data, defaults, into)
	if err != nil || into != nil {
		return object, gvk, err
	}
	u, ok := object.(*unstructured.Unstructured)
	if !ok || isTable(u.GroupVersionKind()) {
		return object, gvk, nil
	}
	packedObject, err := p.packer.FromUnstructured(u)
	if err != nil {
		return nil, gvk, err
	}
	return packedObject, gvk, nil
}

// isTable reports whether objects of a kind are tables, which the reflector refuses by their Go type.
func isTable(gvk schema.GroupVersionKind) bool {
	return gvk.Kind == "Table" && gvk.Group == metav1.GroupName
}

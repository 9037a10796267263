package convert

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crdcache/crdcache/adapters/storage/s2"
	"github.com/crdcache/crdcache/internal/packed"
)

// ownedObject returns the JSON of an object with an owner.
func ownedObject(n int) []byte {
	return fmt.Appendf(nil, `{"apiVersion":"v1","kind":"K","metadata":{"creationTimestamp":"2026-11-20T10:01:00Z",`+
		`"generation":3,"labels":{"app":"team-%d"},"name":"cert-%[1]d","namespace":"ns-1","ownerReferences":[`+
		`{"apiVersion":"cert-manager.io/v1","blockOwnerDeletion":true,"controller":true,"kind":"Certificate",`+
		`"name":"cert-%[1]d","uid":"0b4f8d2e-7c55-4a8e-9a0c-%012[1]d"}],"resourceVersion":"%[1]d",`+
		`"uid":"5c1f8d2e-7c55-4a8e-9a0c-%012[1]d"},"spec":{"a":%[2]q}}`, n, strings.Repeat("a", 1000))
}

// TestOwnerReferences compares the owner references of a view with those of the decoded object, also unusual
// ones. Reading them must not mark the object as read, or the cache would stop compressing it.
func TestOwnerReferences(t *testing.T) {
	converter := newConverter()
	for _, owners := range []string{
		`[{"apiVersion":"v1","kind":"K","name":"a","uid":"1","controller":true,"blockOwnerDeletion":false},` +
			` {"apiVersion":"v1","kind":"L","name":"b\u0041\"é","uid":"2","x":{"y":[1]}}]`,
		`[]`, `null`, `{}`, `"a"`, `[7]`, `[{}]`, `[{"name":null,"controller":null}]`, `[{"name":1,"uid":"1"}]`,
		`[{"kind":"K","kind":"L"}]`, `[{"Kind":"K"}]`, `[{"controller":"true","name":"a"}]`,
	} {
		text := strings.Replace(string(ownedObject(1)), `"generation"`, `"ownerReferences":`+owners+`,"generation"`, 1)
		for _, text := range []string{strings.Replace(text, `"ownerReferences":[{"apiVersion":"cert`,
			`"x":[{"apiVersion":"cert`, 1), text} { // the second one has both
			plain := must(packed.NewPacker(nil).Pack([]byte(text)))
			want := plain.PeekUnstructured().GetOwnerReferences()
			for _, stored := range []any{plain, newCodec().Compress(plain).MetadataReader()} {
				view := must(converter.metadataOf(stored, ""))
				if got := view.GetOwnerReferences(); !reflect.DeepEqual(got, want) {
					t.Errorf("%s: GetOwnerReferences() = %+v, want %+v", owners, got, want)
				}
			}
			if plain.Usage().Read {
				t.Fatal("GetOwnerReferences marked the object as read")
			}
		}
	}
}

// BenchmarkOwnerReferences reads the owner references of compressed objects with different owners.
func BenchmarkOwnerReferences(b *testing.B) {
	objects, codec, converter := make([]*packed.Object, 1<<14), newCodec(), newConverter()
	for n := range objects {
		objects[n] = codec.Compress(must(packed.NewPacker(nil).Pack(ownedObject(n))))
	}
	b.ReportAllocs()
	for n := 0; b.Loop(); n++ {
		o, err := converter.metadataOf(objects[n%len(objects)].MetadataReader(), "")
		if err != nil || len(o.GetOwnerReferences()) != 1 {
			b.Fatal("the owner is missing")
		}
	}
}

func newCodec() *packed.Codec {
	return packed.NewCodec(must(s2.New().Train([][]byte{ownedObject(0)})))
}

func newConverter() *Converter {
	return must(New(runtime.NewScheme(), schema.GroupVersionKind{Version: "v1", Kind: "K"}, Metadata))
}

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

package packed_test

import (
	"bytes"
	"compress/flate"
	"errors"
	"fmt"
	"io"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"

	"github.com/crdcache/crdcache/internal/packed"
)

func init() { utilruntime.ErrorHandlers = nil } // GetManagedFields reports unexpected values

// unusualMetadata are values of metadata that getters may misread.
func unusualMetadata() []string {
	all := []string{
		`null`, `""`, `[]`, `7`, `{}`, ` { } `, `{"":{}}`,
		`{"generation":3,"generation":4}`, `{"generation":4,"gener\u0061tion":5}`, `{"Generation":4}`,
		`{"generation":9223372036854775807}`, `{"generation":9223372036854775808}`, `{"generation":-0}`,
		`{"generation":4.0}`, `{"generation":4.5}`, `{"generation":1e2}`, `{"generation":"4"}`,
		`{"annotations":{"a":"1","a":"2"}}`, `{"annotations":{"a":"1"},"annotations":{"b":"2"}}`,
		`{"annotations":{"a":"1"},"annotations":null}`, `{"annotations":{"a":null}}`, `{"annotations":{"a":1}}`,
		`{"annotations":{"\u0061":"\u00e9\ud83d\ude00\"\\\n"}}`, "{\"annotations\":{\"a\":\"\xff\"}}",
		`{"labels":{"\u0061":"b"},"finalizers":["é"]}`, `{"labels":{"a":[]}}`, `{"labels":{"a":1},"labels":{"é":null}}`,
		`{"finalizers":["a","b"]}`, `{"finalizers":[]}`, `{"finalizers":["a",null]}`, `{"finalizers":{"a":"b"}}`,
		`{"ownerReferences":[{"apiVersion":"v1","kind":"K","name":"o","uid":"1","controller":true}]}`,
		`{"ownerReferences":[{"apiVersion":1,"controller":"true","blockOwnerDeletion":false}]}`,
		`{"ownerReferences":[{"kind":"K","kind":"L"},7]}`, `{"ownerReferences":[null]}`, `{"ownerReferences":[]}`,
		`{"creationTimestamp":"2026-11-20T10:01:00Z","deletionTimestamp":"2026-11-20T10:01:00+02:00"}`,
		`{"creationTimestamp":"yesterday","deletionTimestamp":""}`, `{"deletionTimestamp":"2026-11-20T10:01:00.5Z"}`,
		`{"deletionGracePeriodSeconds":0}`, `{"deletionGracePeriodSeconds":30}`, `{"deletionGracePeriodSeconds":"30"}`,
		`{"managedFields":[{"manager":"m","operation":"Apply","fieldsV1":{"f:a":{}},"time":"2026-11-20T10:01:00Z"}]}`,
		`{"managedFields":[]}`, `{"managedFields":{}}`, `{"managedFields":[{"fieldsV1":null}]}`,
		`{"generateName":"a-","selfLink":"/a"}`, `{"generateName":null,"selfLink":{}}`,
	}
	for _, field := range []string{"annotations", "labels", "generation", "finalizers", "ownerReferences",
		"creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "managedFields", "selfLink",
		"generateName", "name", "namespace", "uid", "resourceVersion"} {
		for _, value := range []string{"null", "true", "1", `"a"`, "{}", "[]"} {
			all = append(all, fmt.Sprintf(`{%q:%s}`, field, value), fmt.Sprintf(`{"x":[],%q:%s,"y":{}}`, field, value))
		}
	}
	return all
}

// checkMetadata compares all getters with those of the decoded object, packed, compressed and decoded. No
// getter may decode the object, and a reader decompresses it at most once.
func checkMetadata(t *testing.T, packer *packed.Packer, document []byte) {
	t.Helper()
	want := &unstructured.Unstructured{}
	if want.UnmarshalJSON(document) != nil {
		return
	}
	packer.Pruner().Apply(want)
	plain, err := packer.Pack(document)
	must(t, err)
	compressor := &deflate{}
	small := packed.NewCodec(compressor).Compress(plain)
	forms := []*packed.Object{plain, small}
	writer := &packed.BlockWriter{}
	if ok, err := writer.Add(plain); err != nil {
		t.Fatal(err)
	} else if ok {
		index, bodies := writer.AppendBlock(nil)
		block, err := packed.ReadBlock(index, func() ([]byte, error) { return slices.Clone(bodies), nil }, 0)
		must(t, err)
		forms = append(forms, block...)
	}
	for _, o := range forms {
		reader := o.MetadataReader()
		compressor.reads.Store(0)
		for _, getters := range []metav1.Object{reader, reader, o} {
			if getters == o && compressor.reads.Load() > 1 {
				t.Fatalf("%s: a getter decompressed the object %d times, want at most once", document,
					compressor.reads.Load())
			}
			expectEqualMetadata(t, want, getters)
		}
		if _, hasJSON := plain.JSON(); hasJSON && o.Decoded() != nil {
			t.Fatalf("%s: a getter decoded the object", document)
		}
	}
}

// objectWithMetadata returns an object with the metadata, large enough for compression.
func objectWithMetadata(metadata string) []byte {
	return fmt.Appendf(nil, `{"apiVersion":"v1","kind":"K","metadata":%s,"spec":{"metadata":{"generation":7},"a":%q}}`,
		metadata, strings.Repeat("a", 1000))
}

func TestMetadata(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	for name, packer := range testPackers(t) {
		t.Run(name, func(t *testing.T) {
			for _, metadata := range unusualMetadata() {
				if len(metadata) < 1000 || name == "presets" { // the reference is slow
					checkMetadata(t, packer, objectWithMetadata(metadata))
				}
			}
			for _, document := range append(readManifests(t), certificate(1)) {
				checkMetadata(t, packer, document)
			}
			for _, document := range unusualDocuments() {
				if len(document) < 100_000 {
					checkMetadata(t, packer, []byte(document))
				}
			}
		})
	}
}

func FuzzMetadata(f *testing.F) {
	for _, metadata := range unusualMetadata() {
		f.Add(metadata)
	}
	packer := packed.NewPacker(nil)
	f.Fuzz(func(t *testing.T, metadata string) {
		if strings.Count(metadata, "[")+strings.Count(metadata, "{") < 1000 { // the reference is slow
			checkMetadata(t, packer, objectWithMetadata(metadata))
		}
	})
}

// deflate is a Compressor that counts its calls.
type deflate struct {
	dictionary []byte
	reads      atomic.Int64
}

func (d *deflate) Compress(dst, src []byte) []byte {
	buffer := bytes.NewBuffer(dst)
	w, err := flate.NewWriterDict(buffer, flate.BestCompression, d.dictionary)
	if err != nil {
		panic(err)
	}
	if _, err := w.Write(src); err != nil {
		panic(err)
	}
	if err := w.Close(); err != nil {
		panic(err)
	}
	return buffer.Bytes()
}

func (d *deflate) Decompress(dst, src []byte) ([]byte, error) {
	d.reads.Add(1)
	buffer := bytes.NewBuffer(dst)
	_, err := io.Copy(buffer, flate.NewReaderDict(bytes.NewReader(src), d.dictionary))
	return buffer.Bytes(), err
}

func TestCompress(t *testing.T) {
	compressor := &deflate{dictionary: certificate(0)}
	codec := packed.NewCodec(compressor)
	for name, packer := range testPackers(t) {
		t.Run(name, func(t *testing.T) {
			for n := range 20 {
				plain := packer.TryPack(certificate(n))
				small := codec.Compress(plain)
				if !small.Compressed() || plain.Compressed() || small.Size() > plain.Size()/2 {
					t.Fatalf("Compressed() = %v, from %d to %d bytes, want less than half",
						small.Compressed(),
						plain.Size(), small.Size())
				}
				if codec.Compress(small) != small {
					t.Fatal("Compress() compressed a compressed object again")
				}
				want, err := plain.Decode()
				must(t, err)
				expectEqual(t, want, small)
				a, errA := plain.AppendJSON([]byte("x"))
				b, errB := small.AppendJSON([]byte("x"))
				if diff := cmp.Diff(string(a), string(b)); diff != "" || errA != nil || errB != nil {
					t.Fatalf("errors %v, %v (-plain +compressed):\n%s", errA, errB, diff)
				}
			}
		})
	}
}

type failingCompressor struct{}

var errForgotten = errors.New("forgotten")

func (failingCompressor) Compress(dst, _ []byte) []byte             { return append(dst, '?') }
func (failingCompressor) Decompress([]byte, []byte) ([]byte, error) { return nil, errForgotten }

func TestDamagedObject(t *testing.T) {
	o := packed.NewCodec(failingCompressor{}).Compress(pack(t, string(certificate(3))))
	if _, err := o.Decode(); !errors.Is(err, errForgotten) {
		t.Errorf("Decode() = %v, want errForgotten", err)
	}
	if _, err := o.AppendJSON(nil); !errors.Is(err, errForgotten) {
		t.Errorf("AppendJSON() = %v, want errForgotten", err)
	}
	u := o.Unstructured()
	if u.GetName() != "certificate-3" || u.GetNamespace() != "tenant-3" || u.GetLabels()["env"] != "prod" ||
		u.GetKind() != "Certificate" || u.GetResourceVersion() != "1000003" {
		t.Errorf("the identity is incomplete: %v", u.Object)
	}
	if o.GetGeneration() != 0 || o.GetAnnotations() != nil || o.GetLabels()["env"] != "prod" {
		t.Errorf("generation %d, annotations %v, labels %v; want only labels", o.GetGeneration(),
			o.GetAnnotations(), o.GetLabels())
	}
}

// TestKeepDecoded verifies that an object stores one typed copy next to the unstructured one, until the
// garbage collector frees them.
func TestKeepDecoded(t *testing.T) {
	type first struct{ Name *string }
	type second struct{ Number int }
	o, err := packed.NewPacker(nil).
		Pack([]byte(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"}}`))
	must(t, err)
	if o.DecodedAs(reflect.TypeFor[first]()) != nil {
		t.Error("DecodedAs() returned a struct before one was stored")
	}
	u := o.Unstructured()
	one, other := &first{Name: new("a")}, &first{}
	if o.KeepDecoded(one) != any(one) || o.KeepDecoded(other) != any(one) ||
		o.DecodedAs(reflect.TypeFor[first]()) != any(one) {
		t.Error("KeepDecoded or DecodedAs did not return the first struct")
	}
	if o.DecodedAs(reflect.TypeFor[second]()) != nil {
		t.Error("DecodedAs() returned a struct of another type")
	}
	if two := (&second{1}); o.KeepDecoded(two) != any(two) || o.DecodedAs(reflect.TypeFor[first]()) != nil {
		t.Error("the structs of two types are stored")
	} else {
		runtime.KeepAlive(two)
	}
	if o.Unstructured() != u {
		t.Error("storing a struct dropped the unstructured copy")
	}
	runtime.KeepAlive(one)
	runtime.KeepAlive(u)
	o.KeepDecoded(&first{Name: new("b")})
	runtime.GC()
	runtime.GC()
	if o.DecodedAs(reflect.TypeFor[first]()) != nil || o.Decoded() != nil {
		t.Error("an unreferenced copy was not garbage-collected")
	}
	defer func() {
		if recover() == nil {
			t.Error("DecodedAs() did not panic for a pointer to another type")
		}
	}()
	o.KeepDecoded(new(int))
}

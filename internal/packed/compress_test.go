package packed_test

import (
	"bytes"
	"compress/flate"
	"errors"
	"io"
	"reflect"
	"runtime"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/crdcache/crdcache/internal/packed"
)

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
				if err != nil {
					t.Fatal(err)
				}
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
	if err != nil {
		t.Fatal(err)
	}
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

package manifest

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"
)

// MaxDocument is how large a document, or an item of a list, may be. No API server takes one of a tenth of that,
// and without a limit what is no manifest at all would be read into memory until there is none left.
const MaxDocument = 32 << 20

var (
	// ErrTooLarge is returned for a document, or an item of a list, of more than MaxDocument.
	ErrTooLarge = fmt.Errorf("a document is larger than %d MiB: is this a file of manifests?", MaxDocument>>20)
	// ErrNotObject is the error of an entry for a document that is something else, which is nothing bad in a folder of
	// all sorts.
	ErrNotObject = errors.New("not a Kubernetes object")
	// ErrNoKind is that for a map without a kind or an apiVersion. It wraps ErrNotObject.
	ErrNoKind = fmt.Errorf("%w: it has no apiVersion or no kind", ErrNotObject)
)

// Place is where in a text something is. Line counts from 1; 0 when none is to blame. Document counts the documents, and
// Item the items of a List, from 1; 0 where there is no such thing.
type Place struct {
	Line, Document, Item int
}

// Entry is one object as it stands in a text, or why there is none.
type Entry struct {
	Place
	// Data is the JSON of the object, which has an apiVersion and a kind. It may only be used until the function that it
	// was passed to returns. It is nil with Err.
	Data []byte
	// APIVersion, Kind, Namespace and Name are those of the object, where they are strings.
	APIVersion, Kind, Namespace, Name string
	Err                               error
}

// Decode returns the object. The error wraps ErrNotObject.
func (e Entry) Decode() (*unstructured.Unstructured, error) {
	u := &unstructured.Unstructured{}
	if err := utiljson.Unmarshal(e.Data, &u.Object); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNotObject, err)
	}
	if u.Object == nil {
		return nil, ErrNotObject
	}
	return u, nil
}

// Read calls yield for every object of a text, those of Lists one by one, and for everything that cannot be read. It
// ends early when yield returns false. The error is that of reading, of decompressing, of ctx, or ErrTooLarge.
func Read(ctx context.Context, r io.Reader, yield func(Entry) bool) error {
	plain, err := decompress(withContext(ctx, r))
	if err != nil {
		return err
	}
	defer plain.Close()
	in := bufio.NewReaderSize(decodeUTF16(source{plain}), 1<<16)
	start, err := in.Peek(1 << 12)
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	untilDone := func(e Entry) bool { return yield(e) && ctx.Err() == nil }
	if looksLikeJSON(string(start)) {
		err = (&jsonReader{window: window{source: in, line: 1}, yield: untilDone}).run()
	} else {
		err = (&yamlReader{in: in, yield: untilDone}).run()
	}
	if err == nil {
		err = ctx.Err()
	}
	return err
}

// looksLikeJSON tells JSON from YAML's flow style, which seldom quotes keys.
func looksLikeJSON(start string) bool {
	start = strings.TrimLeft(strings.TrimPrefix(start, "\ufeff"), " \t\r\n")
	rest, ok := strings.CutPrefix(start, "{")
	rest = strings.TrimLeft(rest, " \t\r\n")
	return ok && (strings.HasPrefix(rest, `"`) || strings.HasPrefix(rest, "}"))
}

// errCutOff replaces io.ErrUnexpectedEOF of what is read, which here says that JSON or UTF-16 is cut off.
var errCutOff = errors.New("the data ends too early: is it complete?")

// source is what is read, with errors that differ from those of the text.
type source struct{ r io.Reader }

// Read implements io.Reader.
func (s source) Read(p []byte) (int, error) {
	n, err := s.r.Read(p)
	if errors.Is(err, io.ErrUnexpectedEOF) {
		err = errCutOff
	}
	return n, err
}

// contextReader ends with a context. Between two reads nothing of the package takes long.
type contextReader struct {
	ctx context.Context
	r   io.Reader
}

func withContext(ctx context.Context, r io.Reader) io.Reader { return contextReader{ctx, r} }

// Read implements io.Reader.
func (c contextReader) Read(p []byte) (int, error) {
	if err := c.ctx.Err(); err != nil {
		return 0, err
	}
	return c.r.Read(p)
}

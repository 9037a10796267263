package manifest

import (
	"bufio"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"sync/atomic"

	"github.com/klauspost/compress/zstd"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"
)

// MaxDocument is the maximum size in bytes of a document, or of an item of a list. API servers accept a tenth
// of it.
const MaxDocument = 32 << 20

var (
	// ErrTooLarge is returned for a document, or an item of a list, of more than MaxDocument.
	ErrTooLarge = fmt.Errorf("a document is larger than %d MiB: write large lists as JSON, which is read item "+
		"by item", MaxDocument>>20)
	// ErrNotObject is the error of an entry that is valid, but not a Kubernetes object.
	ErrNotObject = errors.New("not a Kubernetes object")
	// ErrNoKind is the error of a map without a kind or an apiVersion. It wraps ErrNotObject.
	ErrNoKind = fmt.Errorf("%w: it has no apiVersion or no kind", ErrNotObject)
)

// Position is a position in a text. Its numbers count from 1. Line is zero if the error has no line, and
// Item is zero if the document is not a List.
type Position struct {
	// Member is the path of the text in an archive. It is empty outside of archives.
	Member               string
	Line, Document, Item int
}

// Entry is one object of a text, or the error of a document.
type Entry struct {
	Position
	// Data is the JSON of the object, which has an apiVersion and a kind. It is valid until the callback
	// returns. It is nil if Err is set.
	Data []byte
	// Canonical is set if Data is its text.
	Canonical *Canonical
	// These are the fields of the object, if they are strings.
	APIVersion, Kind, Namespace, Name string
	// Recorded is set for an object of a recording, which replaces the earlier states. Deleted is set if the
	// object was deleted. If only its resource is known, Resource is set, and Kind is empty.
	Recorded, Deleted bool
	Resource          string
	Err               error
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

// Read calls yield for every object of a text or of the texts in an archive, for each item of a List, and for
// every error of a document. It stops when yield returns false. It returns the error of reading or
// decompressing, the context's error, or ErrTooLarge.
func Read(ctx context.Context, r io.Reader, yield func(Entry) bool) error {
	return read(ctx, r, "", nil, func(e Entry) bool {
		return e.Deleted || errors.As(e.Err, new(*Note)) || yield(e)
	})
}

// read is Read that yields deletions and notes, too. The path of the text shows the layout of a bundle.
func read(ctx context.Context, r io.Reader, path string, received *atomic.Int64,
	yield func(Entry) bool) error {
	c := &contentReader{ctx: ctx, yield: yield, path: path,
		archiveCounts: &archiveCounts{received: received, skipped: map[string]int{}}}
	err := c.read(r)
	c.reportSkipped()
	return errors.Join(err, ctx.Err())
}

// PartialError says why a text lacks objects that its source had. The other objects are read.
type PartialError string

func (e PartialError) Error() string { return string(e) }

// ErrTruncated is the error of data, or of a text, that ends within a document.
const ErrTruncated = PartialError("the data ends too early: copy or collect it again; only the preceding part is read")

// errEmpty is the error of a text without a document, a comment or a separator. It can be cut, or the output
// of a command that failed.
const errEmpty = PartialError("the file is empty: write it again, or delete it if it has no objects")

// sourceReader ends with its context, and separates errors of reading from errors of the text.
type sourceReader struct {
	ctx context.Context
	r   io.Reader
}

func (s sourceReader) Read(p []byte) (int, error) {
	if err := s.ctx.Err(); err != nil {
		return 0, err
	}
	n, err := s.r.Read(p)
	if errors.Is(err, io.ErrUnexpectedEOF) {
		err = ErrTruncated
	}
	return n, err
}

// maxWindow is the largest accepted window of zstd in bytes, used by its highest levels.
const maxWindow = 128 << 20

// decompress decompresses data whose first bytes show gzip or zstd. It returns nil for any other data.
func decompress(in *bufio.Reader) (io.ReadCloser, error) {
	magic, _ := in.Peek(4) // a failed read fails again
	switch {
	case len(magic) >= 2 && magic[0] == 0x1f && magic[1] == 0x8b:
		plain, err := gzip.NewReader(in)
		if err != nil {
			return nil, fmt.Errorf("decompress: %w", err)
		}
		return plain, nil
	case string(magic) == "\x28\xb5\x2f\xfd":
		plain, err := zstd.NewReader(in, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
			zstd.WithDecoderMaxWindow(maxWindow))
		if err != nil {
			return nil, fmt.Errorf("decompress: %w", err)
		}
		return plain.IOReadCloser(), nil
	}
	return nil, nil
}

package snapshot

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/crdcache/crdcache/internal/block"
	"github.com/crdcache/crdcache/internal/naming"
)

// Writer writes a file. It is safe for concurrent use. The file is complete only after Commit.
type Writer struct {
	origin Origin
	file   *os.File // nil for a stream
	path   string
	// compressors are shared by the TypeWriters.
	compressors sync.Pool

	mu struct {
		sync.Mutex
		out    *block.Writer
		types  []typeEntry
		closed bool
	}
}

// Create begins a file. It writes a temporary file in the folder of path, readable only by its owner, which
// Commit renames to path.
func Create(path string, origin Origin) (*Writer, error) {
	file, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*.part")
	if err != nil {
		return nil, fmt.Errorf("snapshot: %w", err)
	}
	w := NewWriter(file, origin)
	w.file, w.path = file, path
	return w, nil
}

// NewWriter begins a snapshot that is written to a stream.
func NewWriter(out io.Writer, origin Origin) *Writer {
	if origin.Created.IsZero() {
		origin.Created = time.Now()
	}
	origin.Created = origin.Created.UTC().Truncate(time.Second)
	w := &Writer{origin: origin, compressors: sync.Pool{New: func() any { return &block.Compressor{} }}}
	w.mu.out = block.NewWriter(out, block.ClosedForm, nil)
	return w
}

// header is the header of every snapshot.
var header = block.Header{Form: block.ClosedForm}

var errClosed = errors.New("snapshot: the writer is closed")

// appendFrame writes the frame of a record, and returns its position and size.
func (w *Writer) appendFrame(record []byte) (offset int64, size uint32, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.mu.closed {
		return 0, 0, errClosed
	}
	offset = w.mu.out.End
	if size, err = w.mu.out.Put(record); err != nil {
		err = fmt.Errorf("snapshot: %w", err)
	}
	return offset, size, err
}

// addEntry adds a type to the file, or replaces it. It refuses an entry that readers would refuse.
func (w *Writer) addEntry(e typeEntry) error {
	if problem := e.problem(); problem != "" {
		return fmt.Errorf("snapshot: add a type: %s", problem)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.mu.closed {
		return errClosed
	}
	isSame := func(other typeEntry) bool { return compareTypes(other, e) == 0 }
	w.mu.types = append(slices.DeleteFunc(w.mu.types, isSame), e)
	return w.mu.out.Err()
}

// AddMissing adds a type without its objects, which were not requested or could not be read. Readers get
// status as the response.
func (w *Writer) AddMissing(t Type, status metav1.Status, notRequested bool) error {
	return w.addEntry(typeEntry{SavedType: SavedType{Type: t, Missing: &status, NotRequested: notRequested}})
}

// SetOrigin changes the description of the origin.
func (w *Writer) SetOrigin(change func(*Origin)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	change(&w.origin)
}

// Err returns the first write error.
func (w *Writer) Err() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.mu.out.Err()
}

// Contents returns the description of the contents so far.
func (w *Writer) Contents() Contents {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.sortLocked()
	types := naming.Map(w.mu.types, func(e typeEntry) SavedType { return e.SavedType })
	return Contents{Origin: w.origin, Size: w.mu.out.End, Types: types}
}

func (w *Writer) sortLocked() { slices.SortFunc(w.mu.types, compareTypes) }

func compareTypes(a, b typeEntry) int {
	return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Resource, b.Resource))
}

// Commit writes the index, syncs the file, and renames it to its path. After an error the path is unchanged.
func (w *Writer) Commit() error {
	err := w.writeIndex()
	if w.file == nil {
		return err
	}
	if err == nil {
		err = w.file.Sync()
	}
	err = errors.Join(err, w.file.Close())
	if err == nil {
		err = os.Rename(w.file.Name(), w.path)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("snapshot: write %s: %w", w.path, err), os.Remove(w.file.Name()))
	}
	return nil
}

func (w *Writer) writeIndex() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.mu.closed {
		return errClosed
	}
	w.mu.closed = true
	w.sortLocked()
	index, err := json.Marshal(fileIndex{Origin: w.origin, Types: w.mu.types})
	if err != nil {
		return err
	}
	return w.mu.out.Close(index)
}

// Abort removes the file. It does nothing after Commit. A stream is left incomplete, so it is not a valid
// snapshot.
func (w *Writer) Abort() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.mu.closed {
		return
	}
	w.mu.closed = true
	if w.file != nil {
		_ = w.file.Close()           // the file is removed anyway
		_ = os.Remove(w.file.Name()) // best effort
	}
}

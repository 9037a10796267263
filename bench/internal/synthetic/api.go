package synthetic

import (
	"bytes"
	"compress/gzip"
	"errors"
	"net/http"
	"runtime"
	"strconv"
	"strings"
	"sync"
)

// API is the server's handler. It is safe for concurrent use.
type API struct {
	recording *Recording
	path      string
	count     int

	mu struct {
		sync.Mutex
		version uint64
		changed map[int]revision // of the objects that are not as they were at first
		// pieces are the initial events, objectsPerPiece in each, compressed by themselves; nil: to be made
		// again.
		pieces [][]byte
		// log has the events since version logged; a watch from before has expired.
		log    [][]byte
		logged uint64
		// news is closed when there is more in log, and expired when all watches are to end.
		news, expired chan struct{}
	}
}

// revision is what an object has become.
type revision struct {
	version    uint64
	generation int
}

const (
	// objectsPerPiece is how many initial events of 2 KB a kube-apiserver flushes together, most of the time.
	objectsPerPiece = 26
	// firstVersion is a version with as many digits as those of large clusters.
	firstVersion = 1_000_000_000
)

// New returns an API that has count objects, at a path as "/apis/example.com/v1/things". It makes their
// initial events, which takes some 10 µs for each.
func New(recording *Recording, path string, count int) (*API, error) {
	if count < 1 || count >= 1<<(4*nameDigits) {
		return nil, errors.New("there must be at least one object, and fewer than 16 million")
	}
	a := &API{recording: recording, path: path, count: count}
	a.mu.version = firstVersion + uint64(count)
	a.mu.logged = a.mu.version
	a.mu.changed = map[int]revision{}
	a.mu.news, a.mu.expired = make(chan struct{}), make(chan struct{})
	a.mu.pieces = make([][]byte, (count+objectsPerPiece-1)/objectsPerPiece)
	a.restore(a.mu.pieces)
	return a, nil
}

// Key returns the key of object n, from 0, in the order of watch-lists.
func (a *API) Key(n int) string { return a.recording.keyOf(n) }

// restore makes the pieces that are missing, on all processors. Nothing changes meanwhile.
func (a *API) restore(pieces [][]byte) {
	next := make(chan int)
	var working sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		working.Go(func() { // ends when next is closed
			zip, _ := gzip.NewWriterLevel(nil, gzip.BestSpeed) // the level is a valid one
			var text []byte
			for i := range next {
				text = text[:0]
				for n := i * objectsPerPiece; n < min((i+1)*objectsPerPiece, a.count); n++ {
					text = a.appendEvent(text, "ADDED", n, a.revisionLocked(n))
				}
				pieces[i] = compress(zip, text)
			}
		})
	}
	for i, piece := range pieces {
		if piece == nil {
			next <- i
		}
	}
	close(next)
	working.Wait()
}

// revisionLocked is what object n is now.
func (a *API) revisionLocked(n int) revision {
	if changed, ok := a.mu.changed[n]; ok {
		return changed
	}
	return revision{version: firstVersion + uint64(n), generation: 1}
}

func (a *API) appendEvent(dst []byte, kind string, n int, is revision) []byte {
	dst = append(append(append(dst, `{"type":"`...), kind...), `","object":`...)
	return append(a.recording.appendObject(dst, n, is.version, is.generation), '}', '\n')
}

// compress makes a piece that readers can hand out before they have the next one: a flush comes before its
// end.
func compress(zip *gzip.Writer, text []byte) []byte {
	var piece bytes.Buffer
	zip.Reset(&piece)
	_, _ = zip.Write(text) // a bytes.Buffer takes everything
	_ = zip.Flush()
	_ = zip.Close()
	return bytes.Clone(piece.Bytes())
}

// ServeHTTP implements http.Handler.
func (a *API) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	if r.Method != http.MethodGet || r.URL.Path != a.path || query.Get("watch") == "" ||
		query.Get("watch") == "false" {
		http.NotFound(w, r)
		return
	}
	s := &stream{w: w, flush: http.NewResponseController(w), done: r.Context().Done()}
	w.Header().Set("Content-Type", "application/json")
	if query.Get("sendInitialEvents") != "true" {
		from, err := strconv.ParseUint(query.Get("resourceVersion"), 10, 64)
		if err != nil {
			http.Error(w, "a watch without initial events needs a resource version", http.StatusBadRequest)
			return
		}
		a.follow(s, from)
		return
	}
	if strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
		w.Header().Set("Content-Encoding", "gzip")
		s.zip, _ = gzip.NewWriterLevel(nil, gzip.BestSpeed)
	}
	pieces, version := a.initial()
	for _, piece := range pieces {
		if !s.piece(piece) {
			return
		}
	}
	if s.write(a.initialEnd(version)) {
		a.follow(s, version)
	}
}

// initial returns the initial events and their version.
func (a *API) initial() ([][]byte, uint64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.restore(a.mu.pieces)
	return append([][]byte(nil), a.mu.pieces...), a.mu.version
}

// follow sends what happens after a version.
func (a *API) follow(s *stream, from uint64) {
	for {
		a.mu.Lock()
		lost := from < a.mu.logged
		var events [][]byte
		if !lost {
			events = a.mu.log[from-a.mu.logged:]
		}
		news, expired := a.mu.news, a.mu.expired
		a.mu.Unlock()
		if lost {
			s.write([]byte(expiredEvent))
			return
		}
		if from += uint64(len(events)); !s.write(events...) {
			return
		}
		select {
		case <-news:
		case <-expired:
			s.write([]byte(expiredEvent))
			return
		case <-s.done:
			return
		}
	}
}

// expiredEvent has a client list again.
const expiredEvent = `{"type":"ERROR","object":{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure",` +
	`"message":"too old resource version","reason":"Expired","code":410}}` + "\n"

// initialEnd is the bookmark after the initial events.
func (a *API) initialEnd(version uint64) []byte {
	return []byte(
		`{"type":"BOOKMARK","object":{"kind":"Certificate","apiVersion":"cert-manager.io/v1","metadata":{"resourceVersion":"` +
			strconv.FormatUint(version, 10) +
			`","creationTimestamp":null,"annotations":{"k8s.io/initial-events-end":"true"}},"spec":{}}}` + "\n")
}

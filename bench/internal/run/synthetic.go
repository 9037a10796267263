package run

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

// syntheticAPI is an API server of one type with any number of objects, which are copies of a recorded
// watch-list. It answers only watch-lists and watches. Its answers are prepared, so that it takes little CPU
// time from the clients. It changes objects at a given rate. It is safe for concurrent use.
type syntheticAPI struct {
	recording *recording
	path      string
	count     int
	// KeepGenerations makes updates change only the resource version. Set it before use.
	KeepGenerations bool

	mu struct {
		sync.Mutex
		version uint64
		changed map[int]objectRevision // by number, for objects that have changed
		// pieces are the initial events, objectsPerPiece in each, compressed separately. A nil piece must be
		// rebuilt.
		pieces [][]byte
		// log has the events since version logged. A watch from an earlier version has expired.
		log    [][]byte
		logged uint64
		// logGrown is closed when log grows. watchesExpired is closed to end all watches.
		logGrown, watchesExpired chan struct{}
	}
}

// objectRevision is the current version of an object.
type objectRevision struct {
	version    uint64
	generation int
}

const (
	// objectsPerPiece is the usual number of initial events of 2 KB that a kube-apiserver flushes together.
	objectsPerPiece = 26
	// firstVersion has as many digits as the versions of large clusters.
	firstVersion = 1_000_000_000
)

// newSyntheticAPI returns the handler of count objects at a path such as "/apis/example.com/v1/things". It
// builds their initial events, which takes about 10 µs each.
func newSyntheticAPI(recording *recording, path string, count int) (*syntheticAPI, error) {
	if count < 1 || count >= 1<<(4*nameDigits) {
		return nil, errors.New("there must be at least one object, and fewer than 16 million")
	}
	a := &syntheticAPI{recording: recording, path: path, count: count}
	a.mu.version = firstVersion + uint64(count)
	a.mu.logged = a.mu.version
	a.mu.changed = map[int]objectRevision{}
	a.mu.logGrown, a.mu.watchesExpired = make(chan struct{}), make(chan struct{})
	a.mu.pieces = make([][]byte, (count+objectsPerPiece-1)/objectsPerPiece)
	a.restore(a.mu.pieces)
	return a, nil
}

// Key returns the key of object n, from 0, in the order of watch-lists.
func (a *syntheticAPI) Key(n int) string { return a.recording.keyOf(n) }

// restore rebuilds missing pieces on all CPUs. Objects must not change meanwhile.
func (a *syntheticAPI) restore(pieces [][]byte) {
	next := make(chan int)
	var working sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		working.Go(func() { // ends when next is closed
			zip, _ := gzip.NewWriterLevel(nil, gzip.BestSpeed) // the level is valid
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

// revisionLocked returns the current revision of object n.
func (a *syntheticAPI) revisionLocked(n int) objectRevision {
	if changed, ok := a.mu.changed[n]; ok {
		return changed
	}
	return objectRevision{version: firstVersion + uint64(n), generation: 1}
}

func (a *syntheticAPI) appendEvent(dst []byte, kind string, n int, revision objectRevision) []byte {
	dst = append(append(append(dst, `{"type":"`...), kind...), `","object":`...)
	return append(a.recording.appendObject(dst, n, revision.version, revision.generation), '}', '\n')
}

// compress returns a piece with a flush before its end, so that readers can return it before the
// next piece arrives.
func compress(zip *gzip.Writer, text []byte) []byte {
	var piece bytes.Buffer
	zip.Reset(&piece)
	_, _ = zip.Write(text) // a bytes.Buffer never fails
	_ = zip.Flush()
	_ = zip.Close()
	return bytes.Clone(piece.Bytes())
}

// ServeHTTP implements http.Handler.
func (a *syntheticAPI) ServeHTTP(w http.ResponseWriter, r *http.Request) {
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
	pieces, version := a.initialEvents()
	for _, piece := range pieces {
		if !s.piece(piece) {
			return
		}
	}
	if s.write(a.initialEventsEnd(version)) {
		a.follow(s, version)
	}
}

// initialEvents returns the initial events and their version.
func (a *syntheticAPI) initialEvents() ([][]byte, uint64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.restore(a.mu.pieces)
	return append([][]byte(nil), a.mu.pieces...), a.mu.version
}

// follow sends the events after a version.
func (a *syntheticAPI) follow(s *stream, from uint64) {
	for {
		a.mu.Lock()
		lost := from < a.mu.logged
		var events [][]byte
		if !lost {
			events = a.mu.log[from-a.mu.logged:]
		}
		logGrown, watchesExpired := a.mu.logGrown, a.mu.watchesExpired
		a.mu.Unlock()
		if lost {
			s.write([]byte(expiredEvent))
			return
		}
		if from += uint64(len(events)); !s.write(events...) {
			return
		}
		select {
		case <-logGrown:
		case <-watchesExpired:
			s.write([]byte(expiredEvent))
			return
		case <-s.done:
			return
		}
	}
}

// expiredEvent makes a client relist.
const expiredEvent = `{"type":"ERROR","object":{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure",` +
	`"message":"too old resource version","reason":"Expired","code":410}}` + "\n"

// initialEventsEnd returns the bookmark after the initial events.
func (a *syntheticAPI) initialEventsEnd(version uint64) []byte {
	return []byte(`{"type":"BOOKMARK","object":{"kind":"` + a.recording.kind + `","apiVersion":"cert-manager.io/v1","metadata":{"resourceVersion":"` +
		strconv.FormatUint(version, 10) +
		`","creationTimestamp":null,"annotations":{"k8s.io/initial-events-end":"true"}},"spec":{}}}` + "\n")
}

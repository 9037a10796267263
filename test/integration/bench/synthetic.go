package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"time"
)

// syntheticAPI is an API server of one type with any number of objects, which are copies of a recorded
// watch-list. It answers only watch-lists and watches. Its answers are prepared, so that it takes little CPU
// time from the clients. It changes objects at a given rate. It is safe for concurrent use.
type syntheticAPI struct {
	recording *recording
	path      string
	count     int
	// keepGenerations makes updates change only the resource version. Set it before use.
	keepGenerations bool

	mu struct {
		sync.Mutex
		version uint64
		changed map[int]objectRevision // by number, for objects that have changed
		// pieces are the initial events, objectsPerPiece in each, compressed separately. A nil piece must be
		// rebuilt.
		pieces [][]byte
		// log has the events after version logStart. A watch from an earlier version has expired.
		log      [][]byte
		logStart uint64
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

// bookmarkInterval is the interval of bookmarks on each watch. It is a sixth of a kube-apiserver's, because
// bookmarks are the only work of idle clients.
const bookmarkInterval = 10 * time.Second

// newSyntheticAPI returns the handler of count objects at a path such as "/apis/example.com/v1/things". They
// are copies of the objects in the lines of a watch-list. It builds their initial events, which takes about
// 10 µs each.
func newSyntheticAPI(lines []byte, path string, count int) (*syntheticAPI, error) {
	recording, err := parseRecording(lines)
	if err != nil {
		return nil, err
	}
	if count < 1 || count >= 1<<(4*nameDigits) {
		return nil, errors.New("there must be at least one object, and fewer than 16 million")
	}
	a := &syntheticAPI{recording: recording, path: path, count: count}
	a.mu.version = firstVersion + uint64(count)
	a.mu.logStart = a.mu.version
	a.mu.changed = map[int]objectRevision{}
	a.mu.logGrown, a.mu.watchesExpired = make(chan struct{}), make(chan struct{})
	a.mu.pieces = make([][]byte, (count+objectsPerPiece-1)/objectsPerPiece)
	a.rebuildPieces(a.mu.pieces)
	return a, nil
}

// rebuildPieces rebuilds missing pieces on all CPUs. Objects must not change meanwhile.
func (a *syntheticAPI) rebuildPieces(pieces [][]byte) {
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
		if !s.writePiece(piece) {
			return
		}
	}
	if s.write(a.newBookmark(version, `,"annotations":{"k8s.io/initial-events-end":"true"}`)) {
		a.follow(s, version)
	}
}

// initialEvents returns the initial events and their version.
func (a *syntheticAPI) initialEvents() ([][]byte, uint64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.rebuildPieces(a.mu.pieces)
	return append([][]byte(nil), a.mu.pieces...), a.mu.version
}

// follow sends the events after a version.
func (a *syntheticAPI) follow(s *stream, from uint64) {
	bookmarks := time.NewTicker(bookmarkInterval)
	defer bookmarks.Stop()
	for {
		a.mu.Lock()
		lost := from < a.mu.logStart
		var events [][]byte
		if !lost {
			events = a.mu.log[from-a.mu.logStart:]
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
		case <-bookmarks.C:
			if !s.write(a.newBookmark(from, "")) {
				return
			}
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

// newBookmark returns a bookmark event. metadata is the JSON of additional fields.
func (a *syntheticAPI) newBookmark(version uint64, metadata string) []byte {
	return fmt.Appendf(nil, `{"type":"BOOKMARK","object":{"kind":%q,"apiVersion":%q,"metadata":{"resourceVersion":"%d",`+
		`"creationTimestamp":null%s},"spec":{}}}`+"\n", a.recording.kind, a.recording.apiVersion, version, metadata)
}

// stream is the answer to a watch.
type stream struct {
	w     http.ResponseWriter
	flush *http.ResponseController
	done  <-chan struct{}
	zip   *gzip.Writer // nil without compression
}

// write sends events together. It returns false after the client has disconnected.
func (s *stream) write(events ...[]byte) bool {
	text := bytes.Join(events, nil)
	if s.zip != nil && len(text) > 0 {
		text = compress(s.zip, text)
	}
	return s.writeRaw(text)
}

// writePiece sends a compressed piece, decompressed if the client does not accept gzip.
func (s *stream) writePiece(piece []byte) bool {
	if s.zip != nil {
		return s.writeRaw(piece)
	}
	text, err := decompress(piece)
	return err == nil && s.write(text)
}

func (s *stream) writeRaw(text []byte) bool {
	_, err := s.w.Write(text)
	return s.stillConnected(errors.Join(err, s.flush.Flush()))
}

// stillConnected reports whether the client is still connected.
func (s *stream) stillConnected(err error) bool {
	select {
	case <-s.done:
		return false
	default:
		return err == nil
	}
}

// update changes the first count objects one after the other at the given rate per second, or all at once if
// the rate is zero. It returns a map from the key of each object to the time immediately before its change.
func (a *syntheticAPI) update(ctx context.Context, count int, rate float64) (map[string]time.Time, error) {
	if rate == 0 {
		a.change(0, count)
		return nil, nil
	}
	sent := make(map[string]time.Time, count)
	start := time.Now()
	due := time.NewTimer(0)
	defer due.Stop()
	for n := range count {
		due.Reset(time.Until(start.Add(time.Duration(float64(n) / rate * float64(time.Second)))))
		select {
		case <-due.C:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
		sent[a.recording.keyOf(n)] = time.Now()
		a.change(n, n+1)
	}
	return sent, nil
}

// change updates the objects from first to end-1, and then releases their events to the watches.
func (a *syntheticAPI) change(first, end int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for n := first; n < end; n++ {
		revision := a.changeLocked(n)
		a.mu.log = append(a.mu.log, a.appendEvent(nil, "MODIFIED", n, revision))
	}
	close(a.mu.logGrown)
	a.mu.logGrown = make(chan struct{})
}

func (a *syntheticAPI) changeLocked(n int) objectRevision {
	a.mu.version++
	revision := objectRevision{version: a.mu.version, generation: a.revisionLocked(n).generation}
	if !a.keepGenerations {
		revision.generation++
	}
	a.mu.changed[n] = revision
	a.mu.pieces[n/objectsPerPiece] = nil
	return revision
}

// expire changes the last object without an event and ends all watches, so that clients must relist, as after
// a long disconnection.
func (a *syntheticAPI) expire() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.changeLocked(a.count - 1)
	a.rebuildPieces(a.mu.pieces) // so that the relists do not wait for it
	a.mu.log, a.mu.logStart = nil, a.mu.version
	close(a.mu.watchesExpired)
	a.mu.watchesExpired = make(chan struct{})
}

func decompress(piece []byte) ([]byte, error) {
	r, err := gzip.NewReader(bytes.NewReader(piece))
	if err != nil {
		return nil, err
	}
	return io.ReadAll(r)
}

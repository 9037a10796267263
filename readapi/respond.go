package readapi

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"
)

// notFound is the answer of a kube-apiserver for paths that it does not know.
func notFound(w http.ResponseWriter) { http.Error(w, "404 page not found", http.StatusNotFound) }

// warn adds the header that tells of a deprecated version.
func (t Type) warn(header http.Header, version Version) {
	if !version.Deprecated {
		return
	}
	text := version.DeprecationWarning
	if text == "" {
		text = fmt.Sprintf("%s %s is deprecated", schema.GroupVersion{Group: t.Group, Version: version.Name},
			t.Names.Kind)
	}
	header.Add("Warning", warningHeader(text))
}

// Warn adds to the headers of an answer the warning that clients get for a version of the type that is
// deprecated, as a handler of this package does. It is for handlers around one.
func (t Type) Warn(header http.Header, version string) {
	for _, v := range t.Versions {
		if v.Name == version {
			t.warn(header, v)
		}
	}
}

// warningHeader is the value of a header of that name, as clients print it.
func warningHeader(text string) string { return "299 - " + strconv.Quote(text) }

// WriteError answers a request with the Status of an error, as a handler of this package does. It is for
// handlers around one.
func WriteError(w http.ResponseWriter, r *http.Request, err error) { writeError(w, r, err) }

// writeError answers with the Status of an error.
func writeError(w http.ResponseWriter, r *http.Request, err error) {
	status := statusOf(err)
	if seconds, ok := apierrors.SuggestsClientDelay(err); ok {
		w.Header().Set("Retry-After", strconv.Itoa(seconds))
	}
	writeJSON(w, r, int(status.Code), status)
}

// writeJSON answers with a value.
func writeJSON(w http.ResponseWriter, r *http.Request, code int, value any) {
	data, err := json.Marshal(value)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	// Errors are written even where the form that is asked for cannot be.
	media, err := negotiatePlain(r.Header)
	if err != nil {
		media = mediaJSON
	}
	writeBytes(w, media, code, data)
}

// writeBytes answers with JSON, as YAML where that is asked for.
func writeBytes(w http.ResponseWriter, media string, code int, data []byte) {
	if media == mediaYAML {
		var err error
		if data, err = yaml.JSONToYAML(data); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
	} else {
		data = append(data, '\n')
	}
	w.Header().Set("Content-Type", media)
	w.WriteHeader(code)
	_, _ = w.Write(data) // the client has gone: nobody is left to tell
}

// errClientGone is the error of a write to a client that has gone.
var errClientGone = errors.New("the client has gone")

// chunk is how much of a list is written at a time.
const chunk = 1 << 16

// stream writes an answer bit by bit, so that it needs no memory for all of it. YAML does need that: it can
// only be made of the whole.
type stream struct {
	w     http.ResponseWriter
	media string
	buf   []byte
	// patience is how long the client may take to read a chunk; without end if it is not positive.
	patience time.Duration
}

func newStream(w http.ResponseWriter, media string) *stream {
	w.Header().Set("Content-Type", media)
	return &stream{w: w, media: media}
}

// grown takes the buffer with something appended to it.
func (s *stream) grown(buf []byte) error {
	s.buf = buf
	if len(s.buf) < chunk || s.media == mediaYAML {
		return nil
	}
	return s.flush()
}

func (s *stream) flush() error {
	if s.patience > 0 {
		setWriteDeadline(s.w, time.Now().Add(s.patience))
	}
	if _, err := s.w.Write(s.buf); err != nil {
		return errClientGone
	}
	s.buf = s.buf[:0]
	return nil
}

// setWriteDeadline says until when the client has time to read. Not every server can do that.
func setWriteDeadline(w http.ResponseWriter, deadline time.Time) {
	_ = http.NewResponseController(w).SetWriteDeadline(deadline)
}

func (s *stream) close() error {
	s.buf = append(s.buf, '\n')
	if s.media == mediaYAML {
		data, err := yaml.JSONToYAML(s.buf)
		if err != nil {
			return err
		}
		s.buf = data
	}
	return s.flush()
}

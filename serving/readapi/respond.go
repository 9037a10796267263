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

// notFound answers like a kube-apiserver for unknown paths.
func notFound(w http.ResponseWriter) { http.Error(w, "404 page not found", http.StatusNotFound) }

// Warn adds a Warning header to an answer if the version of the type is deprecated. It is for handlers that
// wrap the handler of this package.
func (t Type) Warn(header http.Header, version string) {
	v := t.Version(version)
	if v == nil || !v.Deprecated {
		return
	}
	text := v.DeprecationWarning
	if text == "" {
		text = fmt.Sprintf("%s %s is deprecated", schema.GroupVersion{Group: t.Group, Version: version},
			t.Names.Kind)
	}
	AddWarning(header, text)
}

// AddWarning adds a Warning header, which clients such as kubectl print.
func AddWarning(header http.Header, text string) { header.Add("Warning", warningHeader(text)) }

func warningHeader(text string) string { return "299 - " + strconv.Quote(text) }

// WriteError answers a request with the Status of an error. It is for handlers that wrap the handler of
// this package.
func WriteError(w http.ResponseWriter, r *http.Request, err error) {
	status := statusOf(err)
	if seconds, ok := apierrors.SuggestsClientDelay(err); ok {
		w.Header().Set("Retry-After", strconv.Itoa(seconds))
	}
	writeJSON(w, r, int(status.Code), status)
}

func writeJSON(w http.ResponseWriter, r *http.Request, code int, value any) {
	data, err := json.Marshal(value)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	// Errors are written even if the requested form is not supported.
	media, err := negotiateMediaType(r.Header)
	if err != nil {
		media = mediaJSON
	}
	writeBytes(w, media, code, data)
}

// writeBytes answers with JSON, or with YAML if media is mediaYAML.
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
	_, _ = w.Write(data) // the only error is that the client has disconnected
}

var errClientGone = errors.New("the client has gone")

const writeChunk = 1 << 16

// stream writes an answer in chunks. YAML is written at the end, because it is converted from the complete
// JSON.
type stream struct {
	w     http.ResponseWriter
	media string
	buf   []byte
	// writeTimeout is the time in which the client must read a chunk. Not positive: no limit.
	writeTimeout time.Duration
}

func newStream(w http.ResponseWriter, media string) *stream {
	w.Header().Set("Content-Type", media)
	return &stream{w: w, media: media}
}

// setAndFlushFull makes buf, to which the caller has appended, the stream's buffer, and sends it if it is
// large enough.
func (s *stream) setAndFlushFull(buf []byte) error {
	s.buf = buf
	if len(s.buf) < writeChunk || s.media == mediaYAML {
		return nil
	}
	return s.flush()
}

func (s *stream) flush() error {
	if s.writeTimeout > 0 {
		setWriteDeadline(s.w, time.Now().Add(s.writeTimeout))
	}
	if _, err := s.w.Write(s.buf); err != nil {
		return errClientGone
	}
	s.buf = s.buf[:0]
	return nil
}

// setWriteDeadline sets the deadline by which the client must read, if the server supports that.
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

package filesource

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"path"
	"slices"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crdcache/crdcache/internal/manifest"
	"github.com/crdcache/crdcache/serving/readapi"
)

var pods = schema.GroupVersionResource{Version: "v1", Resource: "pods"}

// Handler returns the read API of the source, with the logs of containers that its files have. Everything
// but reads is refused with 405.
func (s *Source) Handler() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		request, hasType := readapi.ParseRequest(r)
		isRead := r.Method == http.MethodGet || r.Method == http.MethodHead
		s.Announce(w.Header(), r)
		switch {
		case hasType && (!isRead || slices.Contains(connections, request.Subresource)):
			readapi.WriteError(w, r,
				apierrors.NewMethodNotSupported(request.GVR.GroupResource(), request.Verb))
		case path.Dir(r.URL.Path) == reasonsPath:
			text, _ := json.Marshal(s.Reasons()) // strings have no errors
			writeResponse(w, "application/json", text)
		case request.GVR == pods && request.Subresource == "log":
			text, err := s.readLog(r, request)
			if err != nil {
				readapi.WriteError(w, r, err)
				return
			}
			writeResponse(w, "text/plain", text)
		default:
			s.handler.ServeHTTP(w, r)
		}
	})
}

// connections are the subresources that connect to a container.
var connections = []string{"exec", "attach", "portforward", "proxy"}

// containerLog identifies the log of a container. Its methods know the layouts of docs/bundles.md.
type containerLog struct {
	namespace, pod, container string
	previous                  bool
}

// isIn reports whether a file has only this log.
func (l containerLog) isIn(path string) bool {
	suffix, instance := "", "current"
	if l.previous {
		suffix, instance = "-previous", "previous"
	}
	inspected := fmt.Sprintf("/namespaces/%s/pods/%s/%s/%[3]s/logs/%s", l.namespace, l.pod, l.container,
		instance)
	supported := fmt.Sprintf("/cluster-resources/pods/logs/%s/%s/%s%s.log", l.namespace, l.pod, l.container,
		suffix)
	sonobuoy := fmt.Sprintf("/podlogs/%s/%s/logs/%s.txt", l.namespace, l.pod, l.container)
	path = "/" + path
	return strings.HasSuffix(path, inspected+".log") || strings.HasSuffix(path, inspected+".insecure.log") ||
		strings.HasSuffix(path, supported) || !l.previous && strings.HasSuffix(path, sonobuoy)
}

// mayBeIn reports whether a file can have this log, alone or between others.
func (l containerLog) mayBeIn(path string) bool {
	return l.isIn(path) || strings.HasSuffix("/"+path, fmt.Sprintf("/%s/%s/logs.txt", l.namespace, l.pod))
}

// copyFrom copies the log from a file. found is false if the file does not have it.
func (l containerLog) copyFrom(path string, in io.Reader, out io.Writer) (found bool, err error) {
	if l.isIn(path) {
		_, err = io.Copy(out, in)
		return true, err
	}
	start := fmt.Appendf(nil, "==== START logs for container %s of pod %s/%s ====\n", l.container, l.namespace,
		l.pod)
	end := bytes.Replace(start, []byte("START"), []byte("END"), 1)
	for lines := bufio.NewReader(in); err == nil && !l.previous; {
		var line []byte
		line, err = lines.ReadBytes('\n')
		switch before, isEnd := bytes.CutSuffix(line, end); {
		case !found:
			found = bytes.Equal(line, start)
		case isEnd: // a log can end without a line break
			_, err = out.Write(before)
			return true, err
		default:
			_, _ = out.Write(line) // the last write fails again
		}
	}
	if err == io.EOF {
		err = nil
	}
	return found, err
}

// readLog answers a request for a log.
func (s *Source) readLog(r *http.Request, request readapi.Request) ([]byte, error) {
	query := r.URL.Query()
	for _, name := range []string{"sinceSeconds", "sinceTime", "timestamps", "limitBytes"} {
		if value := query.Get(name); value != "" && value != "false" {
			return nil, apierrors.NewBadRequest(name + " is not supported: the times of the lines are unknown")
		}
	}
	previous, _ := strconv.ParseBool(query.Get("previous"))
	l := containerLog{request.Namespace, request.Name, query.Get("container"), previous}
	var text bytes.Buffer
	found := false
	err := manifest.VisitTexts(r.Context(), s.options.Paths, l.mayBeIn,
		func(path string, in io.Reader) (more bool, err error) {
			found, err = l.copyFrom(path, in, &text)
			return !found, err
		})
	if err == nil && !found {
		err = apierrors.NewNotFound(schema.GroupResource{Resource: "logs"},
			fmt.Sprintf("%s/%s/%s in %s", l.namespace, l.pod, l.container, s.PathNames()))
	}
	lines := slices.Collect(bytes.Lines(text.Bytes()))
	if tail, tailErr := strconv.Atoi(query.Get("tailLines")); tailErr == nil && tail >= 0 {
		lines = lines[max(len(lines)-tail, 0):]
	}
	return bytes.Join(lines, nil), err
}

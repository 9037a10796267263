package conformance

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// APIServer is an http.Handler that stores objects of any resource and serves get, list, watch, watch-list,
// create, update and delete in JSON, with label selectors and the field selector on metadata.name. Watches end
// after the time they ask for, with a bookmark. It keeps every event until Compact.
type APIServer struct {
	mu struct {
		sync.Mutex
		version   int64
		compacted int64
		objects   map[string]*unstructured.Unstructured
		events    []change
		// changed is closed and replaced with every event.
		changed chan struct{}
	}
}

// change is one event in the history of all resources.
type change struct {
	version       int64
	resource      resource
	before, after *unstructured.Unstructured
}

// resource is what a request path names.
type resource struct {
	gvr             schema.GroupVersionResource
	namespace, name string
}

func (r resource) key() string { return r.gvr.String() + "|" + r.namespace + "|" + r.name }

// NewAPIServer returns an empty server.
func NewAPIServer() *APIServer {
	s := &APIServer{}
	s.mu.version = 1
	s.mu.objects = map[string]*unstructured.Unstructured{}
	s.mu.changed = make(chan struct{})
	return s
}

// Compact forgets the history: a watch from before now gets 410.
func (s *APIServer) Compact() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.compacted = s.mu.version
	s.mu.events = nil
}

// ServeHTTP implements http.Handler.
func (s *APIServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	target, ok := parsePath(r.URL.Path)
	if !ok {
		writeError(w, apierrors.NewNotFound(schema.GroupResource{Resource: r.URL.Path}, ""))
		return
	}
	var obj *unstructured.Unstructured
	var err error
	switch {
	case r.Method == http.MethodGet && r.URL.Query().Get("watch") != "":
		s.watch(w, r, target)
		return
	case r.Method == http.MethodGet && target.name == "":
		s.list(w, r, target)
		return
	case r.Method == http.MethodGet:
		obj, err = s.get(target)
	case r.Method == http.MethodPost:
		obj, err = s.write(r, target, s.create)
	case r.Method == http.MethodPut:
		obj, err = s.write(r, target, s.update)
	case r.Method == http.MethodDelete:
		obj, err = s.delete(target)
	default:
		err = apierrors.NewMethodNotSupported(target.gvr.GroupResource(), r.Method)
	}
	if err != nil {
		writeError(w, err)
		return
	}
	writeJSON(w, http.StatusOK, obj)
}

// parsePath understands /api/v1/… and /apis/group/version/…, with or without a namespace and a name.
func parsePath(path string) (resource, bool) {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	var target resource
	switch {
	case len(parts) >= 3 && parts[0] == "api":
		target.gvr.Version, parts = parts[1], parts[2:]
	case len(parts) >= 4 && parts[0] == "apis":
		target.gvr.Group, target.gvr.Version, parts = parts[1], parts[2], parts[3:]
	default:
		return target, false
	}
	if len(parts) >= 3 && parts[0] == "namespaces" {
		target.namespace, parts = parts[1], parts[2:]
	}
	if len(parts) > 2 {
		return target, false
	}
	target.gvr.Resource = parts[0]
	if len(parts) == 2 {
		target.name = parts[1]
	}
	return target, true
}

func (s *APIServer) get(target resource) (*unstructured.Unstructured, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if obj := s.mu.objects[target.key()]; obj != nil {
		return obj, nil
	}
	return nil, apierrors.NewNotFound(target.gvr.GroupResource(), target.name)
}

func (s *APIServer) write(r *http.Request, target resource, store func(resource, *unstructured.Unstructured) error) (*unstructured.Unstructured, error) {
	obj := &unstructured.Unstructured{}
	if err := json.NewDecoder(r.Body).Decode(&obj.Object); err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	target.name = obj.GetName()
	if target.namespace != "" {
		obj.SetNamespace(target.namespace)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := store(target, obj); err != nil {
		return nil, err
	}
	return obj, nil
}

func (s *APIServer) create(target resource, obj *unstructured.Unstructured) error {
	if s.mu.objects[target.key()] != nil {
		return apierrors.NewAlreadyExists(target.gvr.GroupResource(), target.name)
	}
	obj.SetUID(types.UID(fmt.Sprintf("uid-%d", s.mu.version+1)))
	s.record(target, nil, obj)
	return nil
}

func (s *APIServer) update(target resource, obj *unstructured.Unstructured) error {
	before := s.mu.objects[target.key()]
	if before == nil {
		return apierrors.NewNotFound(target.gvr.GroupResource(), target.name)
	}
	if v := obj.GetResourceVersion(); v != "" && v != before.GetResourceVersion() {
		return apierrors.NewConflict(target.gvr.GroupResource(), target.name, fmt.Errorf("it is at %s now", before.GetResourceVersion()))
	}
	obj.SetUID(before.GetUID())
	s.record(target, before, obj)
	return nil
}

func (s *APIServer) delete(target resource) (*unstructured.Unstructured, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	before := s.mu.objects[target.key()]
	if before == nil {
		return nil, apierrors.NewNotFound(target.gvr.GroupResource(), target.name)
	}
	s.record(target, before, nil)
	return before, nil
}

// record gives the change a version and wakes the watches. Stored objects are never changed afterwards.
func (s *APIServer) record(target resource, before, after *unstructured.Unstructured) {
	s.mu.version++
	if after != nil {
		after.SetResourceVersion(strconv.FormatInt(s.mu.version, 10))
		s.mu.objects[target.key()] = after
	} else {
		delete(s.mu.objects, target.key())
	}
	s.mu.events = append(s.mu.events, change{version: s.mu.version, resource: target, before: before, after: after})
	close(s.mu.changed)
	s.mu.changed = make(chan struct{})
}

func writeJSON(w http.ResponseWriter, code int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(body) // the client has gone: nobody is left to tell
}

func writeError(w http.ResponseWriter, err error) {
	status := metav1.Status{Status: metav1.StatusFailure, Message: err.Error(), Code: http.StatusInternalServerError}
	if known, ok := err.(apierrors.APIStatus); ok {
		status = known.Status()
	}
	status.TypeMeta = metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}
	writeJSON(w, int(status.Code), status)
}

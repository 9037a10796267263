package conformance

import (
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
)

// selection is what a list or watch is about.
type selection struct {
	resource
	labels labels.Selector
	fields fields.Selector
}

func parseSelection(r *http.Request, target resource) (selection, error) {
	byLabel, err := labels.Parse(r.URL.Query().Get("labelSelector"))
	if err != nil {
		return selection{}, apierrors.NewBadRequest(err.Error())
	}
	byField, err := fields.ParseSelector(r.URL.Query().Get("fieldSelector"))
	if err != nil {
		return selection{}, apierrors.NewBadRequest(err.Error())
	}
	return selection{resource: target, labels: byLabel, fields: byField}, nil
}

func (s selection) covers(r resource) bool {
	return s.gvr == r.gvr && (s.namespace == "" || s.namespace == r.namespace)
}

func (s selection) matches(obj *unstructured.Unstructured) bool {
	return obj != nil && s.labels.Matches(labels.Set(obj.GetLabels())) &&
		s.fields.Matches(fields.Set{"metadata.name": obj.GetName(), "metadata.namespace": obj.GetNamespace()})
}

// snapshot returns the objects of a selection, by key, and the version that they are at.
func (s *APIServer) snapshot(sel selection) ([]*unstructured.Unstructured, int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var list []*unstructured.Unstructured
	for key, obj := range s.mu.objects {
		if strings.HasPrefix(key, sel.gvr.String()+"|") && (sel.namespace == "" || sel.namespace == obj.GetNamespace()) && sel.matches(obj) {
			list = append(list, obj)
		}
	}
	slices.SortFunc(list, func(a, b *unstructured.Unstructured) int {
		return strings.Compare(a.GetNamespace()+"/"+a.GetName(), b.GetNamespace()+"/"+b.GetName())
	})
	return list, s.mu.version
}

func (s *APIServer) list(w http.ResponseWriter, r *http.Request, target resource) {
	sel, err := parseSelection(r, target)
	if err != nil {
		writeError(w, err)
		return
	}
	items, version := s.snapshot(sel)
	raw := make([]any, len(items))
	for k, item := range items {
		raw[k] = item.Object
	}
	writeJSON(w, http.StatusOK, map[string]any{
		"kind":       "List",
		"apiVersion": sel.gvr.GroupVersion().String(),
		"metadata":   map[string]any{"resourceVersion": strconv.FormatInt(version, 10)},
		"items":      raw,
	})
}

// frames writes watch events.
type frames struct {
	w http.ResponseWriter
}

func (f frames) send(kind string, object any) error {
	body, err := json.Marshal(map[string]any{"type": kind, "object": object})
	if err != nil {
		return err
	}
	if _, err := f.w.Write(append(body, '\n')); err != nil {
		return err
	}
	return http.NewResponseController(f.w).Flush()
}

func (s *APIServer) watch(w http.ResponseWriter, r *http.Request, target resource) {
	sel, err := parseSelection(r, target)
	if err != nil {
		writeError(w, err)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusOK)
	_ = http.NewResponseController(w).Flush()
	out := frames{w: w}
	query := r.URL.Query()
	from, _ := strconv.ParseInt(query.Get("resourceVersion"), 10, 64)
	if initial := query.Get("sendInitialEvents") == "true"; initial || from == 0 {
		if from, err = s.sendInitial(out, sel, initial); err != nil {
			return
		}
	}
	timeout, stop := timeoutOf(query)
	defer stop()
	for {
		events, changed, expired := s.since(from)
		if expired {
			_ = out.send("ERROR", expiredStatus())
			return
		}
		for _, e := range events {
			if from = e.version; sel.covers(e.resource) {
				if err := sendChange(out, sel, e); err != nil {
					return
				}
			}
		}
		select {
		case <-r.Context().Done():
			return
		case <-timeout:
			if query.Get("allowWatchBookmarks") == "true" {
				_ = out.send("BOOKMARK", bookmarkAt(from, "ConfigMap", sel, nil)) // the client may have gone
			}
			return
		case <-changed:
		}
	}
}

// timeoutOf returns a channel that tells when a watch has lasted as long as it asked for, and what frees it.
func timeoutOf(query url.Values) (<-chan time.Time, func()) {
	seconds, err := strconv.Atoi(query.Get("timeoutSeconds"))
	if err != nil {
		return nil, func() {}
	}
	timer := time.NewTimer(time.Duration(seconds) * time.Second)
	return timer.C, func() { timer.Stop() }
}

func bookmarkAt(version int64, kind string, sel selection, annotations map[string]any) map[string]any {
	metadata := map[string]any{"resourceVersion": strconv.FormatInt(version, 10)}
	if annotations != nil {
		metadata["annotations"] = annotations
	}
	return map[string]any{"kind": kind, "apiVersion": sel.gvr.GroupVersion().String(), "metadata": metadata}
}

func expiredStatus() metav1.Status {
	status := apierrors.NewResourceExpired("too old resource version").Status()
	status.TypeMeta = metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}
	return status
}

// sendInitial sends the present state as additions, for a watch-list with the bookmark that ends it.
func (s *APIServer) sendInitial(out frames, sel selection, bookmark bool) (int64, error) {
	items, version := s.snapshot(sel)
	for _, item := range items {
		if err := out.send("ADDED", item.Object); err != nil {
			return 0, err
		}
	}
	if !bookmark {
		return version, nil
	}
	kind := "ConfigMap"
	if len(items) > 0 {
		kind = items[0].GetKind()
	}
	end := map[string]any{metav1.InitialEventsAnnotationKey: "true"}
	return version, out.send("BOOKMARK", bookmarkAt(version, kind, sel, end))
}

// since returns the events after a version and a channel that is closed by the next one.
func (s *APIServer) since(from int64) (events []change, changed <-chan struct{}, expired bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if from < s.mu.compacted {
		return nil, nil, true
	}
	at, _ := slices.BinarySearchFunc(s.mu.events, from+1, func(e change, v int64) int { return int(e.version - v) })
	return slices.Clone(s.mu.events[at:]), s.mu.changed, false
}

// sendChange shows a change as the selection sees it: an object that leaves it is deleted, one that enters it
// is added.
func sendChange(out frames, sel selection, e change) error {
	was, is := sel.matches(e.before), sel.matches(e.after)
	switch {
	case is && was:
		return out.send("MODIFIED", e.after.Object)
	case is:
		return out.send("ADDED", e.after.Object)
	case was:
		final := e.before.DeepCopy()
		final.SetResourceVersion(strconv.FormatInt(e.version, 10))
		return out.send("DELETED", final.Object)
	}
	return nil
}

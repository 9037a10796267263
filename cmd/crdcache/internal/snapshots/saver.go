package snapshots

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"sync"
	"sync/atomic"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/workqueue"

	"github.com/crdcache/crdcache/cmd/crdcache/internal/session"
	"github.com/crdcache/crdcache/discovery"
	"github.com/crdcache/crdcache/discovery/crd"
	"github.com/crdcache/crdcache/dynamicinformer"
	"github.com/crdcache/crdcache/internal/naming"
	"github.com/crdcache/crdcache/internal/requests"
	"github.com/crdcache/crdcache/internal/snapshot"
)

const (
	// maxParallelLists bounds the types that are listed concurrently. Each has a page in memory.
	maxParallelLists = 4
	// listAttempts bounds how often a type is listed if the list expires.
	listAttempts = 3
)

type snapshotSaver struct {
	target    *session.Target
	namespace string // empty means all
	writer    *snapshot.Writer
	// allTypes are all types of the server. types are the types to save, in addition to CRDs and APIServices.
	allTypes, types []discovery.Resource
	// sequential disables concurrent lists, so that equal content gives equal files.
	sequential bool
	redactor   redactor
	// unknownGroups could not be discovered.
	unknownGroups []discovery.GroupFailure

	client  rest.Interface
	objects dynamic.Interface
}

// apiServices is always saved, because clients that follow types read it.
var apiServices = schema.GroupResource{Group: "apiregistration.k8s.io", Resource: "apiservices"}

// save saves types, CRDs and APIServices, and marks all other types as not saved. The error joins the errors
// of the types that could not be read. The file contains them, too. unusable is set if the file is no usable
// snapshot.
func (s *snapshotSaver) save(ctx context.Context) (unusable bool, err error) {
	if s.objects, err = s.target.Client(); err == nil {
		s.client, err = s.target.PlainClient()
	}
	if err != nil {
		return true, err
	}
	s.writer.SetOrigin(func(origin *snapshot.Origin) {
		limitedCtx, cancel := s.target.WithTimeout(ctx)
		defer cancel()
		origin.Server = s.serverInfo(limitedCtx)
		origin.Namespace, origin.Redacted = s.namespace, s.redactor.redactions
		origin.Incomplete = s.target.Reasons()
		if at := s.target.FilesTime(); !at.IsZero() || s.target.ReadsFiles() {
			origin.Created = at
		}
		for _, failure := range s.unknownGroups {
			origin.UnknownGroups = append(origin.UnknownGroups, snapshot.UnknownGroup{
				Group:   failure.GroupVersion.Group,
				Version: failure.GroupVersion.Version, Reason: failure.Err.Error()})
		}
	})
	types, requested := s.selectTypes()
	var doneCount atomic.Int64
	defer s.target.Progress(func() (int, int) { return int(doneCount.Load()), len(types) })()
	var mu sync.Mutex
	var errs []error
	workers := maxParallelLists
	if s.sequential {
		workers = 1
	}
	// The requests end with ctx.
	workqueue.ParallelizeUntil(ctx, workers, len(types), func(i int) {
		err := s.saveOrRecord(ctx, types[i])
		doneCount.Add(1)
		mu.Lock()
		defer mu.Unlock()
		switch {
		case err == nil || ctx.Err() != nil:
		case requested[types[i].GVR]:
			errs = append(errs, err)
		default:
			s.target.Warnf("%v", err)
		}
	})
	if ctx.Err() != nil {
		return true, ctx.Err()
	}
	err = errors.Join(errs...)
	return len(errs) > 0 && len(errs) == len(requested) || errors.Is(err, errWriting), err
}

// selectTypes returns the types to save and the set of requested types. It records all other types as not
// saved.
func (s *snapshotSaver) selectTypes() (types []discovery.Resource,
	requested map[schema.GroupVersionResource]bool) {
	requested = map[schema.GroupVersionResource]bool{}
	for _, resource := range s.types {
		requested[resource.GVR] = true
	}
	for _, resource := range s.allTypes {
		gr := resource.GVR.GroupResource()
		switch {
		case requested[resource.GVR]:
		case !resource.Preferred || !resource.HasVerbs("list"):
		case gr == crd.GVR.GroupResource() || gr == apiServices:
			types = append(types, resource)
		case !slices.ContainsFunc(s.types,
			func(t discovery.Resource) bool { return t.GVR.GroupResource() == gr }):
			s.recordMissing(resource, forbiddenStatus(fmt.Sprintf("%s: not saved in the snapshot", gr)), true)
		}
	}
	return append(types, s.types...), requested
}

func forbiddenStatus(message string) metav1.Status {
	return metav1.Status{Status: metav1.StatusFailure, Code: http.StatusForbidden,
		Reason: metav1.StatusReasonForbidden, Message: message}
}

var errWriting = errors.New("write the snapshot")

// recordMissing records why a type is not in the file.
func (s *snapshotSaver) recordMissing(resource discovery.Resource, reason metav1.Status, notRequested bool) {
	if err := s.writer.AddMissing(savedType(resource), reason, notRequested); err != nil &&
		s.writer.Err() == nil {
		s.target.Warnf("%s: %v", resource, err)
	}
}

// saveOrRecord saves a type. If its objects cannot be read, it records the reason in the file and returns it.
func (s *snapshotSaver) saveOrRecord(ctx context.Context, resource discovery.Resource) error {
	var err error
	for range listAttempts {
		if err = s.saveType(ctx, resource); !apierrors.IsResourceExpired(err) && !apierrors.IsGone(err) {
			break
		}
	}
	if err == nil || ctx.Err() != nil || errors.Is(err, errWriting) {
		return err
	}
	gr := resource.GVR.GroupResource()
	var apiErr apierrors.APIStatus
	if errors.As(err, &apiErr) && apierrors.IsForbidden(err) {
		s.recordMissing(resource, apiErr.Status(), false)
		return err
	}
	s.recordMissing(resource, forbiddenStatus(fmt.Sprintf("%s: could not be saved in the snapshot: %v", gr, err)), false)
	return fmt.Errorf("%s: %w", gr, err)
}

func (s *snapshotSaver) saveType(ctx context.Context, resource discovery.Resource) error {
	gr := resource.GVR.GroupResource()
	described := savedType(resource)
	described.Partial = s.target.Partial(gr)
	section := s.writer.BeginType(described)
	version, err := s.saveObjects(ctx, resource, section)
	if err != nil {
		return err
	}
	return s.writeError(section.Close(version))
}

// writeError marks an error of the file, which prevents further writes.
func (s *snapshotSaver) writeError(err error) error {
	if err == nil || s.writer.Err() == nil {
		return err
	}
	return fmt.Errorf("%w: %w", errWriting, err)
}

func savedType(r discovery.Resource) snapshot.Type {
	return snapshot.Type{
		Group: r.GVR.Group, Version: r.GVR.Version, Resource: r.GVR.Resource, Kind: r.GVK.Kind,
		Singular: r.Singular, ShortNames: r.ShortNames, Categories: r.Categories,
		Namespaced: r.Scope == discovery.Namespaced, Versions: r.ServedVersions,
	}
}

// eventFields are the fields with different names in the two groups of events.
var eventFields = [][2]string{
	{"message", "note"}, {"involvedObject", "regarding"}, {"source", "deprecatedSource"},
	{"count", "deprecatedCount"}, {"firstTimestamp", "deprecatedFirstTimestamp"},
	{"lastTimestamp", "deprecatedLastTimestamp"}, {"reportingComponent", "reportingController"},
}

// withBothEventTypes extends a rule for one group of events to the other group and its field names.
func withBothEventTypes(rule redaction, types []schema.GroupResource) (redaction, []schema.GroupResource) {
	if !slices.ContainsFunc(types, session.IsEvents) {
		return rule, types
	}
	types = naming.AppendMissing(slices.Clip(types), session.EventTypes...)
	for _, path := range slices.Clone(rule.Paths) {
		if other := fieldOfOtherGroup(path); other != "" && !slices.Contains(rule.Paths, other) {
			rule.Paths = append(slices.Clip(rule.Paths), other)
		}
	}
	return rule, types
}

// firstFieldPattern matches the first field of a path: .name or ['name'].
var firstFieldPattern = regexp.MustCompile(`^\$?(\.|\.?\[["'])([A-Za-z]+)(["']\]|$|[.\[])`)

// fieldOfOtherGroup returns the path with the field name of the other group, or "".
func fieldOfOtherGroup(path string) string {
	match := firstFieldPattern.FindStringSubmatchIndex(path)
	if match == nil {
		return ""
	}
	name := path[match[4]:match[5]]
	for _, names := range eventFields {
		for i := range names {
			if name == names[i] {
				return path[:match[4]] + names[1-i] + path[match[5]:]
			}
		}
	}
	return ""
}

// acceptDiscovery requests aggregated discovery.
const acceptDiscovery = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"

const emptyDiscovery = `{"kind":"APIGroupDiscoveryList","apiVersion":"apidiscovery.k8s.io/v2","metadata":{},"items":[]}`

func (s *snapshotSaver) serverInfo(ctx context.Context) snapshot.Server {
	info := snapshot.Server{Host: s.client.Get().AbsPath("/").URL().Host, Documents: map[string]string{}}
	if text, err := s.client.Get().AbsPath("/version").DoRaw(ctx); err == nil && json.Valid(text) {
		info.Version = text
	}
	for _, path := range []string{"/api", "/apis"} {
		text, err := s.client.Get().AbsPath(path).SetHeader("Accept", acceptDiscovery).DoRaw(ctx)
		if apierrors.IsNotFound(err) { // as for /api of an extension API server
			text, err = []byte(emptyDiscovery), nil
		}
		var document metav1.TypeMeta
		if err == nil && json.Unmarshal(text, &document) == nil && document.Kind == "APIGroupDiscoveryList" {
			info.Documents[path] = string(text)
		}
	}
	if len(info.Documents) < 2 {
		info.Documents = nil // one document without the other would hide types
	}
	var kubeSystem metav1.PartialObjectMetadata
	text, err := s.client.Get().AbsPath("/api/v1/namespaces/kube-system").SetHeader("Accept",
		"application/json").DoRaw(ctx)
	if err == nil && json.Unmarshal(text, &kubeSystem) == nil {
		info.UID = string(kubeSystem.UID)
	}
	return info
}

// A page has minPageSize to maxPageSize objects and about pageBytes bytes. This bounds the memory of a save.
const (
	maxPageSize, minPageSize = 500, 10
	pageBytes                = 4 << 20
)

// saveObjects lists a type, and returns the resource version of all pages. If the server cannot continue the
// list, the error is 410 Gone, and the caller must discard the section.
func (s *snapshotSaver) saveObjects(ctx context.Context, resource discovery.Resource,
	section *snapshot.TypeWriter) (version string, err error) {
	gr, namespace := resource.GVR.GroupResource(), ""
	if resource.Scope == discovery.Namespaced {
		namespace = s.namespace
	}
	options := metav1.ListOptions{Limit: minPageSize}
	for {
		var items []any
		var meta metav1.ListMeta
		pageCtx, cancel := s.target.WithTimeout(ctx)
		err := s.target.Retry(pageCtx, gr.String(), func() (err error) {
			items, meta, err = requests.ListPage(pageCtx, s.objects, resource.GVR, namespace, options, false)
			return err
		})
		cancel()
		if err == nil && version != "" && meta.ResourceVersion != version {
			err = apierrors.NewResourceExpired(
				fmt.Sprintf("the list of %s continued at another resource version", gr))
		}
		if err != nil {
			return "", err
		}
		size := 1
		for _, item := range items {
			text, err := textOf(item)
			if err == nil {
				size += len(text)
				text, err = s.redactor.redact(gr, text)
			}
			if err != nil {
				return "", err
			}
			if err := section.Add(text); err != nil {
				return "", s.writeError(err)
			}
		}
		if version, options.Continue = meta.ResourceVersion, meta.Continue; meta.Continue == "" {
			return version, nil
		}
		options.Limit = int64(min(max(pageBytes*len(items)/size, minPageSize), maxPageSize))
	}
}

// textOf returns the JSON of an object of a page.
func textOf(item any) (text []byte, err error) {
	if u, ok := item.(*unstructured.Unstructured); ok {
		return u.MarshalJSON()
	}
	err = item.(dynamicinformer.PackedObject).ReadJSON(func(json []byte) error {
		text = bytes.Clone(json)
		return nil
	})
	return text, err
}

package capture

import (
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
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crdcache/crdcache/discovery"
	"github.com/crdcache/crdcache/discovery/crd"
	"github.com/crdcache/crdcache/snapshot"
)

const (
	// maxParallelLists bounds the types that are listed concurrently. Each has a page in memory.
	maxParallelLists = 4
	// attempts is the number of times that an expired list is restarted.
	attempts = 3
)

// Saver saves types in a snapshot.
type Saver struct {
	Reader
	Writer *snapshot.Writer
	// AllTypes are all types of the server. Types are the types to save, in addition to CRDs and APIServices.
	AllTypes, Types []discovery.Resource
	// Sequential reads one type after another, so that equal content gives equal files.
	Sequential bool
	Redactor   Redactor
	// Warn is called with warnings.
	Warn func(text string)

	crdNames   map[string]bool // names of CRDs; nil if they cannot be read
	done       atomic.Int64
	totalTypes int
}

// Progress returns the number of saved types.
func (s *Saver) Progress() (done, total int) { return int(s.done.Load()), s.totalTypes }

// apiServices define the servers of API groups. Clients that follow types read them.
var apiServices = schema.GroupResource{Group: "apiregistration.k8s.io", Resource: "apiservices"}

// Save saves Types, CRDs and APIServices, and marks all other types as not saved. The returned error joins
// the errors of the types that could not be read, which the file also contains. failed is set if there is no
// usable snapshot.
func (s *Saver) Save(ctx context.Context) (failed bool, err error) {
	s.Writer.SetOrigin(func(about *snapshot.Origin) {
		about.Server = s.server(ctx)
		about.Namespace, about.Redacted = s.Namespace, s.Redactor.redactions
	})
	types, requested := s.selectTypes()
	s.totalTypes = len(types)
	var mu sync.Mutex
	var errs []error
	save := func(resource discovery.Resource) {
		err := s.save(ctx, resource)
		s.done.Add(1)
		if err == nil || ctx.Err() != nil {
			return
		}
		mu.Lock()
		defer mu.Unlock()
		if !requested[resource.GVR] {
			s.Warn(err.Error())
			return
		}
		errs = append(errs, err)
	}
	if len(types) > 0 && types[0].GVR == crd.GVR {
		save(types[0]) // it determines how the other types are printed
		types = types[1:]
	}
	slots := make(chan struct{}, maxParallelLists)
	if s.Sequential {
		slots = make(chan struct{}, 1)
	}
	var saving sync.WaitGroup
	for _, resource := range types {
		slots <- struct{}{}
		saving.Go(func() { // ended by its requests, which ctx ends
			defer func() { <-slots }()
			save(resource)
		})
	}
	saving.Wait()
	if ctx.Err() != nil {
		return true, ctx.Err()
	}
	for _, status := range errs {
		if errors.Is(status, errWriting) {
			return true, status
		}
	}
	return len(errs) > 0 && len(errs) == len(requested), errors.Join(errs...)
}

// selectTypes returns the types to save, CRDs first, and the requested ones among them. It records all other
// types as not saved.
func (s *Saver) selectTypes() (types []discovery.Resource, requested map[schema.GroupVersionResource]bool) {
	requested = map[schema.GroupVersionResource]bool{}
	for _, resource := range s.Types {
		requested[resource.GVR] = true
	}
	for _, resource := range s.AllTypes {
		gr := resource.GVR.GroupResource()
		switch {
		case requested[resource.GVR]:
		case !resource.Preferred || !resource.Watchable():
		case gr == crd.GVR.GroupResource() || gr == apiServices:
			types = append(types, resource)
		case !slices.ContainsFunc(s.Types,
			func(t discovery.Resource) bool { return t.GVR.GroupResource() == gr }):
			s.recordMissing(resource, forbiddenStatus(fmt.Sprintf("%s: not saved in the snapshot", gr)), true)
		}
	}
	types = append(types, s.Types...)
	slices.SortStableFunc(types, func(a, b discovery.Resource) int {
		switch {
		case a.GVR == b.GVR:
			return 0
		case a.GVR == crd.GVR:
			return -1
		case b.GVR == crd.GVR:
			return 1
		}
		return 0
	})
	return types, requested
}

func forbiddenStatus(message string) metav1.Status {
	return metav1.Status{Status: metav1.StatusFailure, Code: http.StatusForbidden,
		Reason: metav1.StatusReasonForbidden, Message: message}
}

var errWriting = errors.New("write the snapshot")

// recordMissing records why a type is not in the file.
func (s *Saver) recordMissing(resource discovery.Resource, reason metav1.Status, notRequested bool) {
	_ = s.Writer.AddMissing(typeOf(resource), reason, notRequested) // the Writer keeps its error
}

// save saves a type. If its objects cannot be read, it records the reason in the file and returns it.
func (s *Saver) save(ctx context.Context, resource discovery.Resource) error {
	var err error
	for range attempts {
		if err = s.saveType(ctx, resource); !apierrors.IsResourceExpired(err) && !apierrors.IsGone(err) {
			break
		}
	}
	if err == nil || ctx.Err() != nil || errors.Is(err, errWriting) {
		return err
	}
	gr := resource.GVR.GroupResource()
	var refusal apierrors.APIStatus
	if errors.As(err, &refusal) && apierrors.IsForbidden(err) {
		s.recordMissing(resource, refusal.Status(), false)
		return err
	}
	s.recordMissing(resource, forbiddenStatus(fmt.Sprintf("%s: could not be saved in the snapshot: %v", gr, err)), false)
	return fmt.Errorf("%s: %w", gr, err)
}

func (s *Saver) saveType(ctx context.Context, resource discovery.Resource) error {
	gr := resource.GVR.GroupResource()
	section := s.Writer.BeginType(typeOf(resource))
	version, columns := "", false
	var defined map[string]bool
	for page, err := range s.Pages(ctx, resource, !s.crdNames[gr.String()] && s.Redactor.keepsRows(gr)) {
		if err != nil {
			return err
		}
		if version = page.Version; !columns && len(page.Columns) > 0 {
			section.SetColumns(page.Columns)
			columns = true
		}
		for _, item := range page.Items {
			row, err := page.row(item)
			if err != nil {
				return err
			}
			object, err := s.Redactor.redact(gr, item.Object)
			if err != nil {
				return err
			}
			if err := section.Add(object, row); err != nil {
				return s.writeError(err)
			}
			if resource.GVR == crd.GVR {
				defined = addName(defined, item.Object)
			}
		}
	}
	if err := section.Close(version); err != nil {
		return s.writeError(err)
	}
	if resource.GVR == crd.GVR {
		s.crdNames = defined
	}
	return nil
}

// writeError marks an error of the file, which prevents further writes.
func (s *Saver) writeError(err error) error {
	if s.Writer.Err() == nil {
		return err
	}
	return fmt.Errorf("%w: %w", errWriting, err)
}

func addName(names map[string]bool, object json.RawMessage) map[string]bool {
	if names == nil {
		names = map[string]bool{}
	}
	var metadata metav1.PartialObjectMetadata
	if json.Unmarshal(object, &metadata) == nil {
		names[metadata.Name] = true
	}
	return names
}

func typeOf(r discovery.Resource) snapshot.Type {
	return snapshot.Type{
		Group: r.GVR.Group, Version: r.GVR.Version, Resource: r.GVR.Resource, Kind: r.GVK.Kind,
		Singular:   r.Singular,
		ShortNames: r.ShortNames, Categories: r.Categories, Namespaced: r.Scope == discovery.Namespaced,
		Versions: r.ServedVersions,
	}
}

// Events are served by two groups with different field names. A path of one is also omitted from the other.
var (
	events      = []schema.GroupResource{{Resource: "events"}, {Group: "events.k8s.io", Resource: "events"}}
	eventFields = [][2]string{
		{"message", "note"}, {"involvedObject", "regarding"}, {"source", "deprecatedSource"}, {"count",
			"deprecatedCount"},
		{"firstTimestamp", "deprecatedFirstTimestamp"}, {"lastTimestamp",
			"deprecatedLastTimestamp"}, {"reportingComponent", "reportingController"},
	}
)

// withBothEventTypes adds the other group of events and its names of the paths.
func withBothEventTypes(redaction Redaction,
	types []schema.GroupResource) (Redaction, []schema.GroupResource) {
	if !slices.ContainsFunc(types,
		func(gr schema.GroupResource) bool { return slices.Contains(events, gr) }) {
		return redaction, types
	}
	types = slices.Clone(types)
	for _, gr := range events {
		if !slices.Contains(types, gr) {
			types = append(types, gr)
		}
	}
	hasEvents := redaction.Paths
	redaction.Paths = slices.Clone(hasEvents)
	for _, path := range hasEvents {
		if other := fieldOfOtherGroup(path); other != "" && !slices.Contains(redaction.Paths, other) {
			redaction.Paths = append(redaction.Paths, other)
		}
	}
	return redaction, types
}

// firstField matches the first field of a path: .name or ['name'].
var firstField = regexp.MustCompile(`^\$?(\.|\.?\[["'])([A-Za-z]+)(["']\]|$|[.\[])`)

// fieldOfOtherGroup returns the path with the field name of the other group, or "".
func fieldOfOtherGroup(path string) string {
	at := firstField.FindStringSubmatchIndex(path)
	if at == nil {
		return ""
	}
	name := path[at[4]:at[5]]
	for _, inBoth := range eventFields {
		for i := range inBoth {
			if name == inBoth[i] {
				return path[:at[4]] + inBoth[1-i] + path[at[5]:]
			}
		}
	}
	return ""
}

// acceptDiscovery requests aggregated discovery.
const acceptDiscovery = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"

// server returns the available information about the cluster.
func (s *Saver) server(ctx context.Context) snapshot.Server {
	server := snapshot.Server{Host: s.Client.Get().AbsPath("/").URL().Host,
		Documents: map[string]json.RawMessage{}}
	if text, err := s.Client.Get().AbsPath("/version").DoRaw(ctx); err == nil && json.Valid(text) {
		server.Version = text
	}
	for _, path := range []string{"/api", "/apis"} {
		text, err := s.Client.Get().AbsPath(path).SetHeader("Accept", acceptDiscovery).DoRaw(ctx)
		var document metav1.TypeMeta
		if err == nil && json.Unmarshal(text, &document) == nil && document.Kind == "APIGroupDiscoveryList" {
			server.Documents[path] = text
		}
	}
	if len(server.Documents) < 2 {
		server.Documents = nil // one document without the other would hide types
	}
	var system metav1.PartialObjectMetadata
	text, err := s.Client.Get().AbsPath("/api/v1/namespaces/kube-system").SetHeader("Accept",
		acceptList).DoRaw(ctx)
	if err == nil && json.Unmarshal(text, &system) == nil {
		server.UID = string(system.UID)
	}
	return server
}

package filesource

import (
	"fmt"
	"hash/maphash"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crdcache/crdcache/internal/snapshot"
	"github.com/crdcache/crdcache/serving/readapi"
)

// Reasons returns why objects of the given types, or of all types, may be missing or old. The problems of
// files concern all types, and are last.
func (s *Source) Reasons(types ...schema.GroupResource) (reasons []snapshot.Reason) {
	s.reading.Lock()
	defer s.reading.Unlock()
	return s.reasonsOf(types...)
}

func (s *Source) reasonsOf(types ...schema.GroupResource) (reasons []snapshot.Reason) {
	for _, r := range s.reading.reasons {
		if r.Type != "" && r.Concerns(types...) { // serveSnapshot reports those of all types
			reasons = append(reasons, r)
		}
	}
	for _, p := range s.Problems() {
		if !p.Warning {
			reasons = append(reasons, snapshot.Reason{Text: p.Error()})
		}
	}
	return reasons
}

// collectedReasons returns why objects of types may be missing, sorted by type.
func (l *loader) collectedReasons() (reasons []snapshot.Reason) {
	types := slices.Collect(maps.Keys(l.uncollected))
	for _, k := range l.kinds { // a bundle can have its definition, or its name with any group
		types = append(types, k.typ.GroupResource())
	}
	for _, gr := range types {
		text := l.reasonOf(gr, l.storage.HasObjects(gr))
		isNamed := func(o schema.GroupResource) bool { return o != gr && o.Resource == gr.Resource }
		if text != "" && (gr.Group != anyGroup || !slices.ContainsFunc(types, isNamed)) {
			reasons = append(reasons, snapshot.Reason{Type: gr.String(), Text: text})
		}
	}
	slices.SortFunc(reasons, func(a, b snapshot.Reason) int { return strings.Compare(a.Type, b.Type) })
	return slices.Compact(reasons)
}

const (
	// WarningPrefix begins warnings about incomplete answers, which kubectl prints.
	WarningPrefix = "299 crdcache-incomplete "
	otherPrefix   = "299 crdcache "
	maxWarnings   = 8 // clients bound the header
	// TimeHeader is set in answers to the time of the files, if it is known, in RFC 3339.
	TimeHeader = "Crdcache-Time"
	// ReasonsHeader is set in the answers of a source with Reasons, to a path below reasonsPath that changes
	// with them. Its answer has the reasons in JSON.
	ReasonsHeader = "Crdcache-Reasons"
	reasonsPath   = "/crdcache/reasons"
)

// setReasons sets the reasons of types, and their path.
func (s *Source) setReasons(reasons []snapshot.Reason) {
	s.reading.reasons, s.reading.reasonsPath = reasons, ""
	s.reading.announcedUses = map[schema.GroupVersionResource]error{}
	if all := s.reasonsOf(); len(all) > 0 {
		s.reading.reasonsPath = fmt.Sprintf("%s/%x", reasonsPath, maphash.String(digestSeed, fmt.Sprint(all)))
	}
}

// Announce sets the time, the reasons and the warning of the type in the header of an answer, also of a
// query. Logs are complete. Handler calls it.
func (s *Source) Announce(header http.Header, r *http.Request) {
	path := r.URL.Path[max(0, strings.Index(r.URL.Path, "/api")):]
	request, _ := readapi.ParseRequest(&http.Request{Method: r.Method, URL: &url.URL{Path: path}})
	s.reading.Lock()
	defer s.reading.Unlock()
	if at := s.Time(); !at.IsZero() {
		header.Set(TimeHeader, at.Format(time.RFC3339Nano))
	}
	if s.reading.reasonsPath != "" {
		header.Set(ReasonsHeader, s.reading.reasonsPath)
	}
	if request.GVR.Empty() || request.Subresource == "log" {
		return
	}
	add := func(prefix, text string) {
		header.Add("Warning", prefix+fmt.Sprintf("%.999q", strings.Join(strings.Fields(text), " ")))
	}
	reasons := s.reasonsOf(request.GVR.GroupResource())
	for _, r := range reasons[:min(len(reasons), maxWarnings)] {
		add(WarningPrefix, r.Text)
	}
	err, isKnown := s.reading.announcedUses[request.GVR]
	if !isKnown {
		err = s.useWarning(request.GVR.GroupResource(), func(t *readapi.Type, version string) bool {
			return version == request.GVR.Version && t.Versions[0].Name != version // the default of clients
		})
		s.reading.announcedUses[request.GVR] = err
	}
	if err != nil {
		add(otherPrefix, err.Error())
	}
}

package web

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/crdcache/crdcache/dynamicinformer/status"
)

const (
	sampleInterval = 2 * time.Second
	// bucketInterval is the time of a bucket, maxBuckets the number of buckets of a type: ten minutes.
	bucketInterval = 10 * time.Second
	maxBuckets     = 60
)

type row struct {
	ID       string `json:"id"`
	Group    string `json:"group"`
	Version  string `json:"version"`
	Resource string `json:"resource"`
	// Options describes the selected objects of the type; empty for all.
	Options string `json:"view,omitempty"`
	State   string `json:"state"`
	Reason  string `json:"reason,omitempty"`
	Message string `json:"message,omitempty"`
	// Since and Contact are milliseconds since 1970, or 0 for never.
	Since       int64 `json:"since"`
	Contact     int64 `json:"contact"`
	Stale       bool  `json:"stale,omitempty"`
	Terminating bool  `json:"terminating,omitempty"`
	Incarnation int   `json:"generation"`
	// Partial: the user may not see all objects. Objects counts the visible ones, and Bytes and Events are
	// omitted.
	Partial bool  `json:"partial,omitempty"`
	Objects int   `json:"objects"`
	Bytes   int64 `json:"bytes"`
	Relists int   `json:"relists"`
	// Events counts all changes, Rate is the changes per second in the last interval.
	Events int64   `json:"events"`
	Rate   float64 `json:"rate"`
}

// sampledRow is a row with its numbers of changes in each bucket, the oldest first. The last is incomplete.
type sampledRow struct {
	row
	Changes []int64 `json:"changes,omitempty"`
}

type condition struct {
	Type    string `json:"type"`
	Status  string `json:"status"`
	Reason  string `json:"reason,omitempty"`
	Message string `json:"message,omitempty"`
	Since   int64  `json:"since"`
}

type typeFigures struct {
	source Source
	mu     struct {
		sync.Mutex
		sampledAt time.Time
		bucketAt  time.Time // the begin of the last bucket
		rows      map[string]*sampledRow
		changed   chan struct{} // closed when there are newer rows
	}
}

func newFigures(source Source) *typeFigures {
	f := &typeFigures{source: source}
	f.mu.rows, f.mu.changed = map[string]*sampledRow{}, make(chan struct{})
	return f
}

func (f *typeFigures) run(closed <-chan struct{}) {
	ticker := time.NewTicker(sampleInterval)
	defer ticker.Stop()
	for {
		f.sample(time.Now())
		select {
		case <-ticker.C:
		case <-closed:
			return
		}
	}
}

func (f *typeFigures) sample(now time.Time) {
	metrics := map[string]status.Metrics{}
	for _, m := range f.source.Factory.Metrics() {
		metrics[m.GVR.String()+"|"+m.Options] = m
	}
	rows := make(map[string]*sampledRow, len(metrics))
	f.mu.Lock()
	defer f.mu.Unlock()
	passed := now.Sub(f.mu.sampledAt).Seconds()
	isNext := now.Sub(f.mu.bucketAt) >= bucketInterval
	if isNext {
		f.mu.bucketAt = now
	}
	for _, k := range f.source.visibleTypes() {
		status := k.informer.Status()
		next := &sampledRow{row: rowOf(k, status, metrics[status.GVR.String()+"|"+status.Options])}
		if old := f.mu.rows[k.id]; old != nil {
			grown := max(0, next.Events-old.Events)
			if passed > 0 {
				next.Rate = float64(grown) / passed
			}
			next.Changes = slices.Clone(old.Changes)
			if isNext || len(next.Changes) == 0 {
				next.Changes = append(next.Changes[max(0, len(next.Changes)-maxBuckets+1):], 0)
			}
			next.Changes[len(next.Changes)-1] += grown
		}
		rows[k.id] = next
	}
	f.mu.sampledAt, f.mu.rows = now, rows
	close(f.mu.changed)
	f.mu.changed = make(chan struct{})
}

func rowOf(k *visibleType, status status.Status, m status.Metrics) row {
	r := row{
		ID: k.id, Group: status.GVR.Group, Version: status.GVR.Version, Resource: status.GVR.Resource,
		Options: status.Options,
		State:   string(status.State), Reason: string(status.Reason), Message: status.Message,
		Since: unixMilliseconds(status.Since), Contact: unixMilliseconds(status.LastContact),
		Stale: status.Stale, Terminating: status.Terminating, Incarnation: status.Incarnation,
		Objects: k.informer.Snapshot().Len(), Bytes: m.ObjectBytes + m.TableBytes + m.IndexBytes,
		Relists: status.Relists.Total(), Events: m.Adds + m.Updates + m.Deletes,
	}
	if k.target != nil && k.target.Resource.Name != r.Resource {
		r.Options = k.target.Resource.Name
	}
	if r.Message == "" && status.LastError != nil {
		r.Message = status.LastError.Error()
	}
	return r
}

// stateWithheld is the state of types that the user may not see, stateChecking the state while this is
// unknown.
const (
	stateWithheld = "Withheld"
	stateChecking = "Checking"
)

// rowsFor returns the rows that the sender of a request may see. The row of a partly visible type has the
// figures of only the visible objects.
func (h *Handler) rowsFor(ctx context.Context, types []*visibleType,
	rows []*sampledRow) ([]*sampledRow, error) {
	if h.visibleScopes == nil {
		return rows, nil
	}
	byID := map[string]*visibleType{}
	for _, k := range types {
		byID[k.id] = k
	}
	out := make([]*sampledRow, 0, len(rows))
	for _, r := range rows {
		k := byID[r.ID]
		if k == nil {
			continue // it has just been removed
		}
		visible, err := h.rowFor(ctx, k, r)
		if err != nil {
			return nil, err
		}
		out = append(out, visible)
	}
	return out, nil
}

func (h *Handler) rowFor(ctx context.Context, k *visibleType, r *sampledRow) (*sampledRow, error) {
	if k.scope.All {
		return r, nil
	}
	visible := &sampledRow{row: row{ID: r.ID, Group: r.Group, Version: r.Version,
		Resource: r.Resource, Options: r.Options}}
	if k.scope.Unknown {
		visible.State, visible.Message = stateChecking, cmp.Or(k.scope.Reason, "your access rights are being checked")
		return visible, nil
	}
	if k.scope.empty() {
		visible.State, visible.Message = stateWithheld, k.scope.Reason
		return visible, nil
	}
	visible.State, visible.Reason, visible.Since, visible.Contact, visible.Stale,
		visible.Terminating = r.State, r.Reason, r.Since, r.Contact, r.Stale, r.Terminating
	visible.Partial, visible.Message = true, "only in "+strings.Join(k.scope.Namespaces, ", ")
	var err error
	visible.Objects, err = h.evaluator(k).count(ctx)
	return visible, err
}

func unixMilliseconds(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}

// latest returns the rows sorted by id, and a channel that is closed when there are newer rows. The caller
// must not modify the rows.
func (f *typeFigures) latest() ([]*sampledRow, <-chan struct{}) {
	f.mu.Lock()
	defer f.mu.Unlock()
	rows := make([]*sampledRow, 0, len(f.mu.rows))
	for _, id := range slices.Sorted(maps.Keys(f.mu.rows)) {
		rows = append(rows, f.mu.rows[id])
	}
	return rows, f.mu.changed
}

func (f *typeFigures) conditions() []condition {
	var all []condition
	for _, c := range f.source.Factory.Conditions() {
		all = append(all, condition{string(c.Type), string(c.Status), string(c.Reason), c.Message,
			unixMilliseconds(c.Since)})
	}
	return all
}

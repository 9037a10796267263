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
	"github.com/crdcache/crdcache/internal/naming"
)

const (
	sampleInterval = 2 * time.Second
	// The changes of a type in the last ten minutes are counted in maxBuckets buckets of bucketInterval.
	bucketInterval = 10 * time.Second
	maxBuckets     = 60
)

type row struct {
	ID       string `json:"id"`
	Group    string `json:"group"`
	Version  string `json:"version"`
	Resource string `json:"resource"`
	// Options describes the selected objects of the type. It is empty for all objects.
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
	// Partial is set if the user may not see all objects. Then Objects counts the visible objects, and
	// Bytes and Events are omitted.
	Partial bool  `json:"partial,omitempty"`
	Objects int   `json:"objects"`
	Bytes   int64 `json:"bytes"`
	Relists int   `json:"relists"`
	// Events counts all events. Changed counts those after the first list. Rate is the number of changes per
	// second in the last sampleInterval.
	Events  int64   `json:"events"`
	Changed int64   `json:"changed"`
	Rate    float64 `json:"rate"`
}

// sampledRow is a row with the number of changes in each bucket. The oldest bucket comes first. The last
// bucket is incomplete.
type sampledRow struct {
	row
	Changes []int64 `json:"changes,omitempty"`
	synced  bool
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
		// bucket is the number of the last bucket of all rows, since 1970.
		bucket  int64
		rows    map[string]*sampledRow
		changed chan struct{} // closed when there are newer rows
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
	elapsed := now.Sub(f.mu.sampledAt).Seconds()
	bucket := now.UnixMilli() / bucketInterval.Milliseconds()
	newBuckets := make([]int64, min(max(bucket-f.mu.bucket, 0), maxBuckets))
	for _, typ := range f.source.visibleTypes() {
		status := typ.informer.Status()
		sampled := &sampledRow{row: newRow(typ, status, metrics[status.GVR.String()+"|"+status.Options]),
			Changes: []int64{0}, synced: typ.informer.HasSynced()}
		if previous := f.mu.rows[typ.id]; previous != nil {
			sampled.Changes = slices.Concat(previous.Changes, newBuckets)
			sampled.Changes = sampled.Changes[max(0, len(sampled.Changes)-maxBuckets):]
			sampled.Changed = previous.Changed
			if previous.synced && sampled.synced { // the first list is no change
				changes := max(0, sampled.Events-previous.Events)
				sampled.Changed += changes
				sampled.Changes[len(sampled.Changes)-1] += changes
				if elapsed > 0 {
					sampled.Rate = float64(changes) / elapsed
				}
			}
		}
		rows[typ.id] = sampled
	}
	f.mu.sampledAt, f.mu.bucket, f.mu.rows = now, bucket, rows
	close(f.mu.changed)
	f.mu.changed = make(chan struct{})
}

func newRow(typ *visibleType, status status.Status, m status.Metrics) row {
	r := row{
		ID: typ.id, Group: status.GVR.Group, Version: status.GVR.Version, Resource: status.GVR.Resource,
		Options: status.Options,
		State:   string(status.State), Reason: string(status.Reason), Message: status.Message,
		Since: unixMilliseconds(status.Since), Contact: unixMilliseconds(status.LastContact),
		Stale: status.Stale, Terminating: status.Terminating, Incarnation: status.Incarnation,
		Objects: typ.informer.Snapshot().Len(), Bytes: m.ObjectBytes + m.TableBytes + m.IndexBytes,
		Relists: status.Relists.Total(), Events: m.Adds + m.Updates + m.Deletes,
	}
	if typ.target != nil && typ.target.Name != "" && typ.target.Name != r.Resource {
		r.Options = typ.target.Name
	}
	if r.Message == "" && status.LastError != nil {
		r.Message = status.LastError.Error()
	}
	return r
}

// stateWithheld is the state of types that the user may not see. stateChecking is the state of types whose
// access review is pending.
const (
	stateWithheld = "Withheld"
	stateChecking = "Checking"
)

// rowsFor returns the rows that the user may see. The figures of a partly visible type count only visible
// objects.
func (h *Handler) rowsFor(ctx context.Context, types []*visibleType,
	rows []*sampledRow) ([]*sampledRow, error) {
	if h.visibleScopes == nil {
		return rows, nil
	}
	byID := map[string]*visibleType{}
	for _, typ := range types {
		byID[typ.id] = typ
	}
	out := make([]*sampledRow, 0, len(rows))
	for _, r := range rows {
		typ := byID[r.ID]
		if typ == nil {
			continue // it has just been removed
		}
		visible, err := h.rowFor(ctx, typ, r)
		if err != nil {
			return nil, err
		}
		out = append(out, visible)
	}
	return out, nil
}

func (h *Handler) rowFor(ctx context.Context, typ *visibleType, sampled *sampledRow) (*sampledRow, error) {
	if typ.scope.All {
		return sampled, nil
	}
	visible := &sampledRow{row: row{ID: sampled.ID, Group: sampled.Group, Version: sampled.Version,
		Resource: sampled.Resource, Options: sampled.Options}}
	if typ.scope.Unknown {
		visible.State, visible.Message = stateChecking, cmp.Or(typ.scope.Reason, "your access rights are being checked")
		return visible, nil
	}
	if typ.scope.empty() {
		visible.State, visible.Message = stateWithheld, typ.scope.Reason
		return visible, nil
	}
	visible.State, visible.Reason, visible.Since = sampled.State, sampled.Reason, sampled.Since
	visible.Contact, visible.Stale, visible.Terminating = sampled.Contact, sampled.Stale, sampled.Terminating
	visible.Partial, visible.Message = true, "only in "+strings.Join(typ.scope.Namespaces, ", ")
	var err error
	visible.Objects, err = h.evaluator(typ).count(ctx)
	return visible, err
}

func unixMilliseconds(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}

// latest returns the rows sorted by id, the number of their last bucket, and a channel that is closed when
// there are newer rows. The caller must not modify the rows.
func (f *typeFigures) latest() (_ []*sampledRow, bucket int64, changed <-chan struct{}) {
	f.mu.Lock()
	defer f.mu.Unlock()
	rows := naming.Map(slices.Sorted(maps.Keys(f.mu.rows)),
		func(id string) *sampledRow { return f.mu.rows[id] })
	return rows, f.mu.bucket, f.mu.changed
}

func (f *typeFigures) conditions() []condition {
	return naming.Map(f.source.Factory.Conditions(), func(c status.Condition) condition {
		return condition{string(c.Type), string(c.Status), string(c.Reason), c.Message,
			unixMilliseconds(c.Since)}
	})
}

package readapi

import (
	"context"
	"net/http"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

type page struct {
	objects []Object
	meta    listMeta
}

// listMeta works like ListMeta with ShardInfo, which ListMeta has only since apimachinery 0.36.
type listMeta struct {
	metav1.ListMeta
	ShardInfo *shardInfo `json:"shardInfo,omitempty"`
}

func (h *handler) list(w http.ResponseWriter, r *http.Request, e *encoder, options *listOptions) {
	p, err := e.resource.list(r.Context(), options, NewTimeSlice(h.options.Scheduler))
	if err == nil {
		err = e.prepare(true, p.objects...)
	}
	if err != nil {
		WriteError(w, r, err)
		return
	}
	out := newStream(w, e.form.mediaType)
	out.writeTimeout = h.options.WriteTimeout
	if err := writeList(out, e, p); err != nil {
		// the answer is already under way, so cut it to show the client that it is incomplete
		panic(http.ErrAbortHandler)
	}
}

func writeList(out *stream, e *encoder, list *page) error {
	buf, err := e.appendHead(nil, list.meta)
	if err != nil {
		return err
	}
	for i, o := range list.objects {
		if i > 0 {
			buf = append(buf, ',')
		}
		if buf, err = e.appendListItem(buf, o); err != nil {
			return err
		}
		if err := out.setAndFlushFull(buf); err != nil {
			return err
		}
		buf = out.buf
	}
	if buf, err = e.appendTail(buf, list.meta); err != nil {
		return err
	}
	if err := out.setAndFlushFull(buf); err != nil {
		return err
	}
	return out.close()
}

func (r *resource) list(ctx context.Context, options *listOptions, timeSlice *TimeSlice) (*page, error) {
	if err := timeSlice.Begin(ctx); err != nil {
		return nil, err
	}
	defer timeSlice.End()
	sel, err := newSelection(r, options)
	if err != nil {
		return nil, err
	}
	base, err := r.listStateFor(options)
	if err != nil {
		return nil, err
	}
	start, end := sel.keyRange()
	start = max(start, base.start)
	result := &page{meta: listMeta{ShardInfo: sel.shard.shardInfo()}}
	result.meta.ResourceVersion = strconv.FormatUint(base.ResourceVersion(), 10)
	limit := options.Limit
	if options.ResourceVersion == "0" {
		limit = 0 // as in a kube-apiserver, a list of any version ignores the limit
	}
	work := sel.cost()
	for o := range sel.candidates(base.Snapshot, start, end) {
		if timeSlice.Spend(work) {
			if err := timeSlice.Yield(ctx); err != nil {
				return nil, err
			}
		}
		// The handler does not search for another selected object, so the next page can be empty.
		// Objects with equal keys, as in snapshots of some servers, are on one page.
		if limit > 0 && !sel.selectsAtMostOne() && int64(len(result.objects)) >= limit &&
			result.objects[len(result.objects)-1].Key() != o.Key() {
			result.meta.Continue = newContinueToken(base.tokenResourceVersion, r.namespace,
				result.objects[len(result.objects)-1].Key())
			if sel.selectsAll() {
				remaining := int64(base.Count(o.Key(), end))
				result.meta.RemainingItemCount = &remaining
			}
			break
		}
		if sel.matches(o) {
			result.objects = append(result.objects, o)
		}
		if sel.filterErr != nil {
			return nil, sel.filterErr
		}
	}
	return result, nil
}

// contextCheckInterval is the number of objects that are evaluated between two checks of the request's
// context.
const contextCheckInterval = 64

type listState struct {
	Snapshot
	// tokenResourceVersion is the version in the next continue token.
	tokenResourceVersion int64
	start                string
}

func (r *resource) listStateFor(options *listOptions) (*listState, error) {
	requested, err := parseResourceVersion(options.ResourceVersion)
	tokenResourceVersion, start := int64(0), ""
	if options.Continue != "" {
		var tokenErr error
		if tokenResourceVersion, start, tokenErr = ParseContinueToken(options.Continue,
			r.namespace); tokenErr != nil {
			return nil, tokenErr
		}
		if options.ResourceVersion != "" && options.ResourceVersion != "0" {
			return nil, apierrors.NewBadRequest("specifying resource version is not allowed when using continue")
		}
	}
	if err != nil {
		return nil, errInvalidListVersion(err)
	}
	version := uint64(0) // the latest
	current := r.collection.ResourceVersion()
	switch {
	case requested > current:
		return nil, NewResourceVersionTooLargeError(requested, current)
	case tokenResourceVersion > int64(current):
		return nil, NewResourceVersionTooLargeError(uint64(tokenResourceVersion), current)
	case tokenResourceVersion > 0: // a negative version continues with the latest state
		version = uint64(tokenResourceVersion)
	case options.ResourceVersionMatch == metav1.ResourceVersionMatchExact && requested > 0:
		version = requested
	}
	if s := r.collection.Snapshot(version); s != nil {
		return &listState{Snapshot: s, tokenResourceVersion: int64(s.ResourceVersion()), start: start}, nil
	}
	if options.Continue != "" {
		return nil, errContinueTooOld(newContinueToken(continueFromLatest, r.namespace,
			strings.TrimSuffix(start, "\x00")))
	}
	return nil, apierrors.NewResourceExpired("The resourceVersion for the provided list is too old.")
}

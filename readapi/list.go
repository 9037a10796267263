package readapi

import (
	"context"
	"net/http"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// page is what one list request returns.
type page struct {
	objects []Object
	meta    metav1.ListMeta
}

// list serves a list, or a page of one.
func (h *handler) list(w http.ResponseWriter, r *http.Request, e *encoder,
	options *internalversion.ListOptions) {
	p, err := e.t.list(r.Context(), options, NewTurn(h.options.Turns))
	if err == nil {
		err = e.prepare(true, p.objects...)
	}
	if err != nil {
		writeError(w, r, err)
		return
	}
	out := newStream(w, e.shape.media)
	out.patience = h.options.WriteTimeout
	if err := writeList(out, e, p); err != nil {
		// The answer has begun: all that is left is to cut it, so that nobody takes it for whole.
		panic(http.ErrAbortHandler)
	}
}

func writeList(out *stream, e *encoder, p *page) error {
	buf, err := e.appendHead(nil, p.meta)
	if err != nil {
		return err
	}
	for i, o := range p.objects {
		if i > 0 {
			buf = append(buf, ',')
		}
		if buf, err = e.appendListItem(buf, o); err != nil {
			return err
		}
		if err := out.grown(buf); err != nil {
			return err
		}
		buf = out.buf
	}
	if buf, err = e.appendTail(buf, p.meta); err != nil {
		return err
	}
	if err := out.grown(buf); err != nil {
		return err
	}
	return out.close()
}

// list selects a page.
func (t *resource) list(ctx context.Context, options *internalversion.ListOptions,
	turn *Turn) (*page, error) {
	if err := turn.Begin(ctx); err != nil {
		return nil, err
	}
	defer turn.End()
	selected, err := newSelection(t, options)
	if err != nil {
		return nil, err
	}
	from, err := t.from(options)
	if err != nil {
		return nil, err
	}
	start, end := selected.keys()
	start = max(start, from.start)
	p := &page{meta: metav1.ListMeta{ResourceVersion: strconv.FormatUint(from.ResourceVersion(), 10),
		ShardInfo: selected.shard.info()}}
	limit := options.Limit
	if options.ResourceVersion == "0" {
		limit = 0 // any state will do, so that there is nothing to be saved by pages
	}
	work := selected.work()
	for o := range selected.within(from.Snapshot, start, end) {
		if turn.Work(work) {
			if err := turn.Pass(ctx); err != nil {
				return nil, err
			}
		}
		// Whether any of the rest is selected shows on the next page, which may be empty.
		if limit > 0 && !selected.one() && int64(len(p.objects)) == limit {
			p.meta.Continue = newContinueToken(from.pinned, t.namespace, p.objects[limit-1].Key())
			if selected.all() {
				left := int64(from.Count(o.Key(), end))
				p.meta.RemainingItemCount = &left
			}
			break
		}
		if selected.matches(o) {
			p.objects = append(p.objects, o)
		}
	}
	return p, nil
}

// checkEvery is how many objects are looked at between two checks of the request's context.
const checkEvery = 64

// origin is the state that a list is taken of.
type origin struct {
	Snapshot
	// pinned is the version for the next token.
	pinned int64
	start  string
}

// from returns the state that the options ask for.
func (t *resource) from(options *internalversion.ListOptions) (*origin, error) {
	asked, err := parseResourceVersion(options.ResourceVersion)
	pinned, start := int64(0), ""
	if options.Continue != "" {
		var invalid error
		if pinned, start, invalid = ParseContinueToken(options.Continue, t.namespace); invalid != nil {
			return nil, invalid
		}
		if options.ResourceVersion != "" && options.ResourceVersion != "0" {
			return nil, apierrors.NewBadRequest("specifying resource version is not allowed when using continue")
		}
	}
	if err != nil {
		return nil, errListVersion(err)
	}
	wanted := uint64(0) // the newest
	current := t.collection.ResourceVersion()
	switch {
	case asked > current:
		return nil, errTooNew(asked, current)
	case pinned > int64(current):
		return nil, errTooNew(uint64(pinned), current)
	case pinned > 0: // less goes on with what is there now
		wanted = uint64(pinned)
	case options.ResourceVersionMatch == metav1.ResourceVersionMatchExact && asked > 0:
		wanted = asked
	}
	if s := t.collection.Snapshot(wanted); s != nil {
		return &origin{Snapshot: s, pinned: int64(s.ResourceVersion()), start: start}, nil
	}
	if options.Continue != "" {
		return nil, errContinueTooOld(newContinueToken(latest, t.namespace,
			strings.TrimSuffix(start, "\x00")))
	}
	return nil, apierrors.NewResourceExpired("The resourceVersion for the provided list is too old.")
}

package readapi

import (
	"net/http"
	"slices"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// page is what one list request returns.
type page struct {
	objects []*object
	meta    metav1.ListMeta
}

// list serves a list, or a page of one.
func (h *handler) list(w http.ResponseWriter, r *http.Request, e *encoder, options *internalversion.ListOptions) {
	p, err := h.storage.list(e.t, options)
	if err == nil {
		err = e.prepare(true, p.objects...)
	}
	if err != nil {
		writeError(w, r, err)
		return
	}
	if err := writeList(newStream(w, e.shape.media), e, p); err != nil {
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
		if buf, err = e.appendItem(buf, o); err != nil {
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
func (s *Storage) list(t *resource, options *internalversion.ListOptions) (*page, error) {
	selected, err := newSelection(*t, options)
	if err != nil {
		return nil, err
	}
	from, err := s.from(t, options)
	if err != nil {
		return nil, err
	}
	rest := within(from.objects, t.namespace)
	if from.start != "" {
		at, _ := slices.BinarySearchFunc(rest, from.start, func(o *object, key string) int { return strings.Compare(o.key, key) })
		rest = rest[at:]
	}
	p := &page{meta: metav1.ListMeta{ResourceVersion: strconv.FormatUint(from.version, 10)}}
	limit := options.Limit
	if options.ResourceVersion == "0" {
		limit = 0 // any state will do, so that there is nothing to be saved by pages
	}
	for i, o := range rest {
		// Whether any of the rest is selected shows on the next page, which may be empty.
		if limit > 0 && !selected.one() && int64(len(p.objects)) == limit {
			p.meta.Continue = newToken(from.pinned, t.namespace, p.objects[limit-1].key)
			if selected.all() {
				left := int64(len(rest) - i)
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

// origin is the state that a list is taken of.
type origin struct {
	objects []*object
	version uint64
	// pinned is the version for the next token.
	pinned int64
	start  string
}

// from returns the state that the options ask for.
func (s *Storage) from(t *resource, options *internalversion.ListOptions) (*origin, error) {
	asked, err := parseResourceVersion(options.ResourceVersion)
	pinned, start := int64(0), ""
	if options.Continue != "" {
		var invalid error
		if pinned, start, invalid = parseToken(options.Continue, t.namespace); invalid != nil {
			return nil, invalid
		}
		if options.ResourceVersion != "" && options.ResourceVersion != "0" {
			return nil, apierrors.NewBadRequest("specifying resource version is not allowed when using continue")
		}
	}
	if err != nil {
		return nil, errListVersion(err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := &origin{version: s.mu.version, pinned: int64(s.mu.version), start: start}
	switch {
	case asked > s.mu.version:
		return nil, errTooNew(asked, s.mu.version)
	case pinned > int64(s.mu.version):
		return nil, errTooNew(uint64(pinned), s.mu.version)
	case pinned > 0: // less goes on with what is there now
		now.version, now.pinned = uint64(pinned), pinned
	case options.ResourceVersionMatch == metav1.ResourceVersionMatchExact && asked > 0:
		now.version, now.pinned = asked, int64(asked)
	}
	var known bool
	now.objects, known = t.collection.snapshotAt(now.version)
	switch {
	case known:
		return now, nil
	case options.Continue != "":
		return nil, errContinueTooOld(newToken(latest, t.namespace, strings.TrimSuffix(start, "\x00")))
	}
	return nil, apierrors.NewResourceExpired("The resourceVersion for the provided list is too old.")
}

// within returns the part of sorted objects that is in a namespace.
func within(objects []*object, namespace string) []*object {
	if namespace == "" {
		return objects
	}
	bound := func(key string) int {
		at, _ := slices.BinarySearchFunc(objects, key, func(o *object, key string) int { return strings.Compare(o.key, key) })
		return at
	}
	return objects[bound(namespace+"/"):bound(namespace+"0")] // "0" follows "/"
}

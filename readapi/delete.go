package readapi

import (
	"errors"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// delete deletes the object, or marks it where it has finalizers.
func (c *change) delete(options *metav1.DeleteOptions) (*written, error) {
	c.dry = len(options.DryRun) > 0
	key := objectKey(c.t.namespace, c.t.name)
	for {
		before, _ := c.t.collection.Get(key).(*object)
		if before == nil {
			return nil, apierrors.NewNotFound(c.t.typ.GroupResource(), c.t.name)
		}
		content, err := decode(before)
		if err != nil {
			return nil, err
		}
		content["apiVersion"] = c.t.gv.String()
		u, gone, err := c.remove(&unstructured.Unstructured{Object: content}, options)
		if err != nil {
			return nil, err
		}
		var done *written
		if gone {
			status := c.deleted(u)
			if done = (&written{code: http.StatusOK, status: &status}); !c.dry {
				_, err = c.storage.replace(c.t.typ.GroupResource(), key, before, nil)
			}
		} else {
			code := http.StatusOK
			if orphans := orphanDependents(options); orphans != nil && !*orphans {
				code = http.StatusAccepted
			}
			done, err = c.store(key, before, u, code)
		}
		if !errors.Is(err, errChanged) {
			return done, err
		}
	}
}

// deleteCollection deletes what a list selects, one after the other.
func (c *change) deleteCollection(r *http.Request, e *encoder, body []byte) (*written, error) {
	selection, err := parseListOptions(r.URL.Query())
	if err != nil {
		return nil, err
	}
	options, err := parseDeleteOptions(r, body)
	if err != nil {
		return nil, err
	}
	p, err := c.t.list(r.Context(), selection, NewTurn(nil))
	if err == nil {
		err = e.prepare(true, p.objects...)
	}
	if err != nil {
		return nil, err
	}
	for _, o := range p.objects {
		if err := r.Context().Err(); err != nil {
			return nil, err
		}
		one := *c.t
		one.namespace, one.name = splitKey(o.Key())
		single := &change{mutation: mutation{t: &one, now: c.now}, storage: c.storage}
		if _, err := single.delete(options.DeepCopy()); err != nil && !apierrors.IsNotFound(err) {
			return nil, err
		}
	}
	return &written{code: http.StatusOK, list: p}, nil
}

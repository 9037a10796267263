package readapi

import (
	"errors"
	"fmt"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// maxNames is how many names are tried for an object that leaves its name to the server, as with a
// kube-apiserver.
const maxNames = 8

// insert stores a new object.
func (c *change) insert(body []byte) (*written, error) {
	u, err := c.decode(body)
	if err != nil {
		return nil, err
	}
	generated := u.GetName() == "" && u.GetGenerateName() != ""
	for range maxNames {
		var done *written
		if done, err = c.insertOnce(u.DeepCopy()); !generated || !apierrors.IsAlreadyExists(err) {
			return done, err
		}
	}
	return nil, err
}

func (c *change) insertOnce(u *unstructured.Unstructured) (*written, error) {
	// Whether there may be a new object is asked before all else, as admission is; and again when it is
	// stored.
	if err := c.storage.mayCreate(c.t, u.GetName()); err != nil {
		return nil, err
	}
	if err := c.create(u); err != nil {
		return nil, err
	}
	c.warnOfFinalizers(u, nil)
	key := objectKey(u.GetNamespace(), u.GetName())
	if existing, _ := c.t.collection.Get(key).(*object); existing != nil {
		return nil, c.exists(u, existing)
	}
	u.SetResourceVersion("")
	done, err := c.store(key, nil, u, http.StatusCreated)
	if errors.Is(err, errChanged) {
		return nil, c.exists(u, nil)
	}
	return done, err
}

// exists is the answer for an object whose name is taken.
func (c *change) exists(u *unstructured.Unstructured, existing *object) error {
	err := apierrors.NewAlreadyExists(c.t.typ.GroupResource(), u.GetName())
	if u.GetGenerateName() != "" {
		err = apierrors.NewGenerateNameConflict(c.t.typ.GroupResource(), u.GetName(), 1)
	}
	if existing == nil {
		return err
	}
	if there, decodeErr := decode(existing); decodeErr == nil &&
		(&unstructured.Unstructured{Object: there}).GetDeletionTimestamp() != nil {
		err.ErrStatus.Message = fmt.Sprintf("object is being deleted: %s", err.ErrStatus.Message)
	}
	return err
}

// attempt updates the object that is there by what change makes of it.
func (c *change) attempt(change func(old *unstructured.Unstructured) (*unstructured.Unstructured,
	error)) (*written, error) {
	key := objectKey(c.t.namespace, c.t.name)
	before, _ := c.t.collection.Get(key).(*object)
	if before == nil {
		return c.attemptNew(change)
	}
	content, err := decode(before)
	if err != nil {
		return nil, err
	}
	content["apiVersion"] = c.t.gv.String()
	old := &unstructured.Unstructured{Object: content}
	u, err := change(old.DeepCopy())
	if err != nil {
		return nil, err
	}
	gone, err := c.update(old, u)
	if err != nil {
		return nil, err
	}
	c.warnOfFinalizers(u, old)
	var done *written
	if gone {
		done, err = c.removed(key, before, u)
	} else {
		done, err = c.store(key, before, u, http.StatusOK)
	}
	if errors.Is(err, errChanged) {
		return nil, apierrors.NewConflict(c.t.typ.GroupResource(), c.t.name, err)
	}
	return done, err
}

// attemptNew updates an object that is not there, which for some types creates it.
func (c *change) attemptNew(change func(old *unstructured.Unstructured) (*unstructured.Unstructured,
	error)) (*written, error) {
	notFound := apierrors.NewNotFound(c.t.typ.GroupResource(), c.t.name)
	if !c.t.typ.Rules.CreateOnUpdate || c.t.subresource != "" || c.patches {
		return nil, notFound
	}
	u, err := change(nil)
	if err != nil {
		return nil, err
	}
	if u.GetUID() != "" {
		return nil, c.checkUID(&unstructured.Unstructured{}, u)
	}
	if _, err := basedOn(u); err != nil {
		return nil, err
	}
	u.SetResourceVersion("")
	return c.insertOnce(u)
}

// removed removes an object that an update has left nothing of, and answers with what it was told to be.
func (c *change) removed(key string, before *object, last *unstructured.Unstructured) (*written, error) {
	body, err := encodeBody(last.Object)
	if err == nil && !c.dry {
		_, err = c.storage.replace(c.t.typ.GroupResource(), key, before, nil)
	}
	return &written{code: http.StatusOK, object: &object{key: key, stored: c.t.gv.Version, body: body}}, err
}

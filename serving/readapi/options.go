package readapi

import (
	"cmp"
	"fmt"
	"net/url"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion/scheme"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// maxSelectorLength is the maximum length of a selector in bytes. It bounds the work for each object.
const maxSelectorLength = 64 << 10

type listOptions struct {
	internalversion.ListOptions
	ShardSelector string // a field of ListOptions since apimachinery 0.36
}

// parseListOptions parses the parameters of a list or watch with the code, and the errors, of a
// kube-apiserver.
func parseListOptions(query url.Values) (*listOptions, error) {
	for _, name := range []string{"labelSelector", "fieldSelector", "shardSelector"} {
		for _, value := range query[name] {
			if len(value) > maxSelectorLength {
				return nil, apierrors.NewBadRequest(
					fmt.Sprintf("%s has %d bytes, more than the maximum of %d: list all objects and filter them", name, len(value), maxSelectorLength))
			}
		}
	}
	options := &listOptions{ShardSelector: query.Get("shardSelector")}
	if err := scheme.ParameterCodec.DecodeParameters(query, metav1.SchemeGroupVersion,
		&options.ListOptions); err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	internalversion.SetListOptionsDefaults(&options.ListOptions, true)
	if problems := validation.ValidateListOptions(&options.ListOptions, true); len(problems) > 0 {
		return nil, apierrors.NewInvalid(schema.GroupKind{Group: metav1.GroupName, Kind: "ListOptions"}, "",
			problems)
	}
	options.LabelSelector = cmp.Or(options.LabelSelector, labels.Everything())
	return options, nil
}

// parseResourceVersion parses the resource version of a client. 0 means any version.
func parseResourceVersion(text string) (uint64, error) {
	if text == "" {
		return 0, nil
	}
	version, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return 0, field.Invalid(field.NewPath("resourceVersion"), text, err.Error())
	}
	return version, nil
}

// errInvalidVersion returns the error for an invalid resource version of a get or watch.
func errInvalidVersion(err error) error { return errInternal(err.Error()) }

func errInvalidListVersion(err error) error {
	return apierrors.NewBadRequest(fmt.Sprintf("invalid resource version: %v", err))
}

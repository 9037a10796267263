package readapi

import (
	"encoding/base64"
	"encoding/json"
	"path"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// token says where a list goes on, in the form of a kube-apiserver's continue tokens.
type token struct {
	APIVersion string `json:"v"`
	// Version is the resource version of the whole list, or negative, as latest is.
	Version int64 `json:"rv"`
	// Start is "/" and the key of the last object, relative to the namespace of the list, and a zero byte.
	Start string `json:"start"`
}

const (
	tokenVersion = "meta.k8s.io/v1"
	// latest continues a list that is forgotten, with what is there now.
	latest = -1
)

// newContinueToken returns the token that continues a list of a namespace, or of all (""), after the object
// of a key, with the state of a version. It is in the form of a kube-apiserver.
func newContinueToken(version int64, namespace, key string) string {
	key = strings.TrimPrefix(key, prefixOf(namespace))
	data, _ := json.Marshal(token{tokenVersion, version, "/" + key + "\x00"}) // cannot fail
	return base64.RawURLEncoding.EncodeToString(data)
}

// ParseContinueToken returns what a token says: the version of the list, which is negative where it goes on
// with what is there now, and the key below which everything has been listed.
func ParseContinueToken(text, namespace string) (version int64, start string, err error) {
	invalid := func(detail string) error {
		return apierrors.NewBadRequest("invalid continue token: continue key is not valid: " + detail)
	}
	data, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil {
		return 0, "", invalid(err.Error())
	}
	var t token
	if err := json.Unmarshal(data, &t); err != nil {
		return 0, "", invalid(err.Error())
	}
	switch {
	case t.APIVersion != tokenVersion:
		return 0, "", invalid("server does not recognize this encoded version " + t.APIVersion)
	case t.Version == 0:
		return 0, "", invalid("incorrect encoded start resourceVersion (version meta.k8s.io/v1)")
	case t.Start == "":
		return 0, "", invalid("encoded start key empty (version meta.k8s.io/v1)")
	}
	key := "/" + strings.TrimPrefix(t.Start, "/")
	if path.Clean(key) != key {
		return 0, "", invalid(t.Start)
	}
	return t.Version, prefixOf(namespace) + key[1:], nil
}

// prefixOf is what all keys of a namespace begin with.
func prefixOf(namespace string) string {
	if namespace == "" {
		return ""
	}
	return namespace + "/"
}

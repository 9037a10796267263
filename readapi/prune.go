package readapi

import "github.com/crdcache/crdcache/discovery/crd"

// prune removes what the schema of a version does not have from an object in place, as a kube-apiserver does when it
// converts one.
func prune(content map[string]any, s *crd.Schema) { pruneObject(content, s, true) }

func pruneObject(content map[string]any, s *crd.Schema, resource bool) {
	for name, value := range content {
		if resource && (name == "apiVersion" || name == "kind" || name == "metadata") {
			continue
		}
		field := s.Properties[name]
		if field == nil {
			field = s.AdditionalProperties
		}
		switch {
		case field != nil:
			pruneValue(value, field)
		case !s.PreserveUnknown:
			delete(content, name)
		}
	}
}

func pruneValue(value any, s *crd.Schema) {
	switch v := value.(type) {
	case map[string]any:
		pruneObject(v, s, s.EmbeddedResource)
	case []any:
		if s.Items == nil {
			return
		}
		for _, element := range v {
			pruneValue(element, s.Items)
		}
	}
}

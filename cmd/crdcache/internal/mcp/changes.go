package mcp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"sync"

	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/crdcache/crdcache/cmd/crdcache/internal/print"
	"github.com/crdcache/crdcache/cmd/crdcache/internal/session"
	"github.com/crdcache/crdcache/dynamicinformer"
	"github.com/crdcache/crdcache/internal/naming"
)

var changeColumns = []string{"TYPE", "NAMESPACE", "NAME", "CHANGE", "FIELDS"}

// rememberedChanges is the least number of changes that each type remembers.
const rememberedChanges = 2000

// changes returns the changes after a token, the latest state of each object once. The token has the resource
// version of each cluster and type, and the session: another one can read other clusters or files.
func (o *verb) changes(ctx context.Context, in args, streams genericiooptions.IOStreams) (rows [][]any,
	token string, err error) {
	since, err := url.ParseQuery(in.Since)
	if err != nil || in.Since != "" && since.Get("session") != o.session || len(in.Types)+len(since) == 0 {
		return nil, "", errors.New("unknown: since is not a token of this session: query the objects, and call changes without since for a new token")
	}
	since.Del("session")
	for key := range since {
		in.Types = append(in.Types, key[strings.LastIndexByte(key, ' ')+1:])
	}
	flags, next, mu := o.flags, url.Values{"session": {o.session}}, sync.Mutex{}
	readers, err := flags.Readers(ctx, in.Types, new(session.StyleFlags).InformerOptions(), streams)
	if err != nil {
		return nil, "", err
	}
	err = session.EachCluster(ctx, readers, func(ctx context.Context, r *session.Reader) error {
		return r.Sync(ctx, session.SyncCallbacks{AfterSync: func(_ context.Context, _ *session.Types,
			synced []session.Cache) error {
			mu.Lock()
			defer mu.Unlock()
			for _, cached := range synced {
				if !cached.Shared {
					return fmt.Errorf("unknown: the changes of %s cannot be followed: its list or watch in all namespaces fails, or --memory-budget is used up", cached.Resource)
				}
				if err := cached.Informer.KeepHistory(rememberedChanges); err != nil {
					return err
				}
				gvr, h := cached.Resource.GVR, cached.Informer.History()
				key := fmt.Sprintf("%s %s.%s.%s", r.Cluster, gvr.Resource, gvr.Version, gvr.Group)
				next.Set(key, strconv.FormatUint(h.ResourceVersion, 10))
				from, err := strconv.ParseUint(cmp.Or(since.Get(key), next.Get(key)), 10, 64)
				if err != nil || from < h.Oldest || from > h.ResourceVersion {
					return fmt.Errorf("unknown: the changes of %s since this token are no longer known: "+
						"query the objects, and call changes without since for a new token", cached.Resource)
				}
				changed, err := changedRows(r.Cluster, cached, h, from, in.Namespace)
				if rows = append(rows, changed...); err != nil {
					return err
				}
			}
			return nil
		}})
	})
	return rows, next.Encode(), err
}

// changedRows returns a row for each object that differs from its state at a resource version.
func changedRows(cluster string, cached session.Cache, h dynamicinformer.History, from uint64,
	namespace string) (rows [][]any, err error) {
	var keys []string
	changes := map[string]dynamicinformer.Change{}
	for i := range h.Len() {
		c := h.At(i)
		if objectNamespace, _ := naming.SplitKey(c.Key); c.ResourceVersion <= from ||
			namespace != "" && namespace != objectNamespace {
			continue
		}
		if earlier, ok := changes[c.Key]; ok {
			c.Old = earlier.Old
		} else {
			keys = append(keys, c.Key)
		}
		changes[c.Key] = c
	}
	for _, key := range keys {
		objectNamespace, name := naming.SplitKey(naming.WithoutNumber(key))
		typeName := strings.TrimSpace(cluster + " " + cached.Resource.GVR.GroupResource().String())
		row := []any{typeName, objectNamespace, name}
		switch c := changes[key]; {
		case c.New == nil:
			row = append(row, "deleted")
		case c.Old == nil:
			row = append(row, "added")
		default:
			before, beforeErr := session.DecodeStored(c.Old)
			after, afterErr := session.DecodeStored(c.New)
			if err := errors.Join(beforeErr, afterErr); err != nil {
				return nil, err
			}
			fields := print.Compare(cached.Resource.GVR.GroupResource(), before.Object, after.Object)
			if len(fields) == 0 {
				continue
			}
			change := "modified"
			if before.GetUID() != after.GetUID() {
				change = "replaced"
			}
			lines := strings.Split(strings.TrimSpace(print.ChangesText(fields, false)), "\n")
			row = append(row, change, naming.Map(lines, func(line string) any { return line }))
		}
		rows = append(rows, row)
	}
	return rows, nil
}

package cli

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"github.com/crdcache/crdcache/cmd/crdcache/internal/print"
	"github.com/crdcache/crdcache/cmd/crdcache/internal/session"
	"github.com/crdcache/crdcache/indexers/query"
)

// askServer has the server answer that keeps the type, and reports whether it has. What it cannot answer, or answers with an
// error, is asked of the objects, which may still be read from it, or else from the cluster, where errors have their words.
func (o *queryOptions) askServer(ctx context.Context) (done bool, err error) {
	if !o.HasServer() {
		return false, nil
	}
	answer, from, err := o.fromServer(ctx)
	if err != nil {
		o.Say("the server does not answer the query, whose objects are read: %v", err)
		return false, nil
	}
	defer answer.Close()
	o.Say("answered by the server that keeps %s, at version %s", from.Resource, answer.ResourceVersion)
	o.warnOfMisfits(ctx, from.Types)
	o.warn(answer.Warnings)
	return true, o.show(ctx, answer, from)
}

func (o *queryOptions) fromServer(ctx context.Context) (*session.Answer, *session.Local, error) {
	if follows, _ := query.FollowsReferences(o.query); follows {
		return nil, nil, fmt.Errorf("it takes no queries about references")
	}
	from, err := o.Local(ctx)
	if err != nil {
		return nil, nil, err
	}
	if o.explain && (o.LocalNamespace(from.Resource) != "" || o.Cached().LabelSelector != nil) {
		return nil, nil, errors.New("its plans count all objects that it keeps")
	}
	answer, err := from.Query(ctx, o.LocalNamespace(from.Resource), o.parameters())
	return answer, from, err
}

// parameters are those of the request.
func (o *queryOptions) parameters() url.Values {
	p := url.Values{"q": {o.query.String()}, "scan": {"true"}}
	set := func(name, value string, is bool) {
		if is {
			p.Set(name, value)
		}
	}
	set("labelSelector", session.Selectors(o.Cached()).LabelSelector, o.Cached().LabelSelector != nil)
	set("sortBy", o.asked.SortBy, o.asked.SortBy != "")
	set("descending", "true", o.asked.Descending)
	set("limit", strconv.Itoa(o.asked.Limit), o.asked.Limit > 0)
	set("continue", o.asked.Continue, o.asked.Continue != "")
	set("count", "true", o.count)
	set("keys", "true", o.keysOnly || o.explain || o.style.Format.Name == print.Name)
	set("rows", "true", o.style.Format.IsTable() && o.style.Format.Name != print.CSV) // which has dates where tables have ages
	set("values", o.values, o.values != "")
	p["groupBy"] = o.groups.GroupBy
	for _, m := range o.groups.Measures {
		p.Add("compute", m.String())
	}
	return p
}

// show prints an answer as that of the command's own caches would be.
func (o *queryOptions) show(ctx context.Context, answer *session.Answer, from *session.Local) (err error) {
	switch {
	case answer.Count != nil:
		return o.printCount(*answer.Count)
	case o.values != "":
		return o.showValues(answer.Values)
	case len(o.groups.GroupBy)+len(o.groups.Measures) > 0:
		return o.showGroups(answer.Groups)
	case o.explain:
		_, err := fmt.Fprintln(o.Out, strings.TrimSuffix(answer.Plan, "\n"))
		return err
	case o.keysOnly:
		err = o.printKeys(answer.Keys)
	default:
		section := answer.Section(o.Cached().Transform != nil)
		if len(answer.Columns) > 0 {
			section = answer.RowSection(false)
		}
		err = o.print(ctx, from.Types, section)
	}
	if err == nil && answer.Continue != "" {
		fmt.Fprintf(o.ErrOut, "there is more: --continue %s\n", answer.Continue)
	}
	return err
}

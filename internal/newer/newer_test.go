package newer

import (
	"reflect"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
)

type checker chan struct{}

func (checker) Name() string            { return "name" }
func (c checker) Done() <-chan struct{} { return c }

// handle is a handler's registration.
type handle struct{ SyncedChecker }

var _ cache.ResourceEventHandlerRegistration = handle{}

func TestSynced(t *testing.T) {
	ready := make(checker)
	h := handle{NewSyncedChecker(ready)}
	channel := Done(h, nil)
	if h.HasSynced() || isClosed(channel) {
		t.Error("HasSynced() = true before the checker is done")
	}
	close(ready)
	if !h.HasSynced() {
		t.Error("HasSynced() = false after the checker is done")
	}
	<-channel // polled with client-go 0.35
	if _, has := reflect.TypeFor[cache.ResourceEventHandlerRegistration]().
		MethodByName("HasSyncedChecker"); !has {
		return // client-go 0.35
	}
	result := reflect.ValueOf(h).MethodByName("HasSyncedChecker").Call(nil)[0]
	if c, ok := result.Interface().(Checker); !ok || c.Name() != "name" || c.Done() != ready.Done() {
		t.Errorf("HasSyncedChecker() = %v, want the handler's checker", result)
	}
}

// plain has only the methods of client-go 0.35.
type plain struct{ synced atomic.Bool }

func (p *plain) HasSynced() bool { return p.synced.Load() }

func TestPoll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &plain{}
		channel := Done(p, nil)
		time.Sleep(time.Second)
		synctest.Wait()
		if isClosed(channel) {
			t.Error("the channel is closed before the sync")
		}
		p.synced.Store(true)
		time.Sleep(pollPeriod)
		synctest.Wait()
		if !isClosed(channel) {
			t.Error("the channel is open after the sync")
		}
	})
	synctest.Test(t, func(t *testing.T) { // fails if a goroutine remains
		end := make(chan struct{})
		Done(&plain{}, end)
		close(end)
	})
}

func isClosed(channel <-chan struct{}) bool {
	select {
	case <-channel:
		return true
	default:
		return false
	}
}

func TestShard(t *testing.T) {
	o, m := &metav1.ListOptions{}, &metav1.ListMeta{}
	*ShardSelector(o) = "a"
	SetShardInfo(m, "b")
	field := reflect.ValueOf(o).Elem().FieldByName("ShardSelector")
	if !field.IsValid() { // apimachinery 0.35
		if *o != (metav1.ListOptions{}) || *m != (metav1.ListMeta{}) {
			t.Errorf("the options are %+v and the list metadata %+v, want no change with apimachinery 0.35",
				o, m)
		}
		return
	}
	if field.String() != "a" || ShardInfo(m) != "b" || ShardInfo(&metav1.ListMeta{}) != "" {
		t.Errorf("the options are %+v and the list metadata %+v, want the shard fields a and b", o, m)
	}
}

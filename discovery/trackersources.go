package discovery

import (
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crdcache/crdcache/discovery/crd"
)

// crdStore connects the CRD watch to the state.
func (t *Tracker) crdStore() *crdStore {
	return &crdStore{
		replace: func(list []*crd.Definition, rest []unreadable) error {
			var err error
			t.update(func(s *state, status *TrackerStatus) (events []Event) {
				if events, err = s.replaceCRDs(list, rest, time.Now()); err != nil {
					status.CRDs.LastError = err
					return nil
				}
				status.CRDs.Synced, status.CRDs.Denied = true, false
				status.crdsRead(s)
				return events
			})
			return err
		},
		put: func(d *crd.Definition) {
			t.updateCRDs(func(s *state) []Event { return s.putCRD(d) })
		},
		drop: func(gr schema.GroupResource) {
			t.updateCRDs(func(s *state) []Event { return s.dropCRD(gr, time.Now()) })
		},
		broken: func(u unreadable) {
			t.updateCRDs(func(s *state) []Event { return s.breakCRD(u, time.Now()) })
		},
	}
}

// updateCRDs applies what the CRD watch brought.
func (t *Tracker) updateCRDs(change func(s *state) []Event) {
	t.update(func(s *state, status *TrackerStatus) []Event {
		events := change(s)
		status.crdsRead(s)
		return events
	})
}

// crdsRead notes that CRDs were read, and what is among them that cannot be understood.
func (status *TrackerStatus) crdsRead(s *state) {
	status.CRDs.ok(time.Now())
	status.CRDs.LastError = s.unreadableError()
}

func (t *Tracker) crdReports() watchReports {
	reports := t.reports(func(s *TrackerStatus) *SourceStatus { return &s.CRDs })
	reports.ok = func() { t.updateCRDs(func(*state) []Event { return nil }) }
	reports.denied = func(error) {
		newly := false
		t.update(func(s *state, status *TrackerStatus) []Event {
			newly = !s.crdsDenied
			status.CRDs.Denied = true
			return s.denyCRDs(time.Now())
		})
		if newly {
			t.Refresh() // from now on discovery has the last word
		}
	}
	return reports
}

// apiServiceStore requests discovery rounds when an aggregated API changes. Group versions that the
// server serves itself only matter while CRDs cannot be watched.
func (t *Tracker) apiServiceStore() *apiServiceStore {
	return &apiServiceStore{
		synced: func(first bool) {
			late := false
			t.update(func(_ *state, status *TrackerStatus) []Event {
				status.APIServices.Synced, status.APIServices.Denied = true, false
				late = first && t.mu.discovering
				return nil
			})
			t.answered()
			if late {
				t.Refresh() // what was registered since the first round is in this list
			}
		},
		changed: func(remote bool) {
			if !remote && t.Status().Mode != Polling {
				return
			}
			t.mu.Lock()
			t.mu.pace.changed()
			t.mu.Unlock()
			t.Refresh()
		},
	}
}

func (t *Tracker) apiServiceReports() watchReports {
	reports := t.reports(func(s *TrackerStatus) *SourceStatus { return &s.APIServices })
	failed := reports.failed
	reports.failed = func(err error, list bool) {
		failed(err, list)
		if list {
			t.answered()
		}
	}
	reports.denied = func(error) {
		t.update(func(_ *state, status *TrackerStatus) []Event {
			status.APIServices.Synced, status.APIServices.Denied = false, true
			return nil
		})
	}
	return reports
}

// reports notes successes and failures of requests in one source's status.
func (t *Tracker) reports(source func(*TrackerStatus) *SourceStatus) watchReports {
	return watchReports{
		ok: func() {
			t.update(func(_ *state, status *TrackerStatus) []Event {
				source(status).ok(time.Now())
				return nil
			})
		},
		failed: func(err error, _ bool) {
			t.update(func(_ *state, status *TrackerStatus) []Event {
				source(status).LastError = err
				return nil
			})
		},
	}
}

package discovery

import (
	"time"

	"github.com/crdcache/crdcache/discovery/crd"
)

// crdStore connects the CRD watch to the state.
func (t *Tracker) crdStore() *crdStore {
	return &crdStore{
		replace: func(list []*crd.Definition) error {
			var err error
			t.update(func(s *state, status *TrackerStatus) (events []Event) {
				if events, err = s.replaceCRDs(list, time.Now()); err != nil {
					status.CRDs.LastError = err
					return nil
				}
				status.CRDs.Synced, status.CRDs.Denied = true, false
				status.CRDs.ok(time.Now())
				return events
			})
			return err
		},
		put: func(d *crd.Definition) {
			t.update(func(s *state, status *TrackerStatus) []Event {
				status.CRDs.ok(time.Now())
				return s.putCRD(d)
			})
		},
		drop: func(d *crd.Definition) {
			t.update(func(s *state, status *TrackerStatus) []Event {
				status.CRDs.ok(time.Now())
				return s.dropCRD(d.GroupResource(), time.Now())
			})
		},
		broken: func(err error) {
			t.update(func(_ *state, status *TrackerStatus) []Event {
				status.CRDs.LastError = err
				return nil
			})
		},
	}
}

func (t *Tracker) crdReports() watchReports {
	reports := t.reports(func(s *TrackerStatus) *SourceStatus { return &s.CRDs })
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

// apiServiceStore asks for a discovery round when an aggregated API changes. Group versions that the
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
			if remote || t.Status().Mode == Polling {
				t.Refresh()
			}
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

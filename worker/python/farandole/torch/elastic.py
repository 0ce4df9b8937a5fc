"""Elastic training: not in this version. Every name is there, and says so when it is used."""

from farandole import _later

run = _later.function("elastic.run")
TorchState = _later.type_("elastic.TorchState")
ElasticSampler = _later.type_("elastic.ElasticSampler")
State = _later.type_("elastic.State")
ObjectState = _later.type_("elastic.ObjectState")

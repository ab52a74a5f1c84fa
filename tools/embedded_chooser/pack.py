"""Put trained networks into one file of weights: python -m tools.embedded_chooser.pack DOMAIN.pddl=CHECKPOINT.pt …"""

from __future__ import annotations

import argparse
from pathlib import Path

import torch

from constrained.chooser.graphs import FeatureVocabulary
from constrained.chooser.network import Network
from constrained.chooser.weights import EMBEDDED, save_scorers
from constrained.planning import read_domain


def averaged(domain: Path, checkpoint: Path) -> Network:
    """The network of a checkpoint that `train` wrote, with the averaged weights."""
    network = Network(FeatureVocabulary(read_domain(domain.read_text(encoding="utf-8"), str(domain))))
    average = torch.optim.swa_utils.AveragedModel(network)
    average.load_state_dict(torch.load(checkpoint)["average"])
    network.load_state_dict(average.module.state_dict())
    return network.eval()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("trained", nargs="+", metavar="DOMAIN.pddl=CHECKPOINT.pt")
    parser.add_argument("--out", type=Path, default=EMBEDDED)
    options = parser.parse_args()
    networks = [averaged(*map(Path, pair.split("="))) for pair in options.trained]
    save_scorers(options.out, [network.scorer() for network in networks])
    print(f"{options.out}: {options.out.stat().st_size:,} bytes, {len(networks)} domains")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())

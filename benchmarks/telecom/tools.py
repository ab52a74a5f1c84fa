"""tau2-bench's telecom without its package: its tools written anew, over its databases, which the data folder has.

They answer word by word as tau2's own do, which a test compares where there is a checkout. Left out are the user's
`toggle_wifi` and `set_apn_settings`, for which no step of the policy asks, and new draft bills.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from copy import deepcopy
from typing import Any

TODAY = "2025-02-25"
LAST_MONTH = ("2025-01-01", "2025-01-31", "2025-01-15")
"""Beginning, end, and the day on which an overdue bill was due."""

FIELDS = {
    "customers": "customer_id full_name date_of_birth email phone_number address account_status payment_methods "
    "line_ids bill_ids created_at last_extension_date goodwill_credit_used_this_year",
    "lines": "line_id phone_number status plan_id device_id data_used_gb data_refueling_gb roaming_enabled "
    "contract_end_date last_plan_change_date last_sim_replacement_date suspension_start_date",
    "plans": "plan_id name data_limit_gb price_per_month data_refueling_price_per_gb",
    "devices": "device_id device_type model imei is_esim_capable activated activation_date last_esim_transfer_date",
    "bills": "bill_id customer_id period_start period_end issue_date total_due due_date line_items status",
}
"""Table -> its members, in the order of tau2's models."""

_TIMES = ("created_at", "activation_date", "last_esim_transfer_date")
_BARS = {
    "none": "📵 No Signal",
    "poor": "📶¹ Poor",
    "fair": "📶² Fair",
    "good": "📶³ Good",
    "excellent": "📶⁴ Excellent",
}
_SIGNAL = {"2G": "poor", "3G": "fair", "4G": "good", "5G": "excellent", "none": "none"}
"""Where the user is: the signal of each kind of network."""
_NETWORKS = {"4g_5g_preferred": "5G", "4g_only": "4G", "3g_only": "3G", "2g_only": "2G"}
_SPEEDS = {"2G": (0.1, 0.4), "3G": (1.0, 5.0), "4G": (10.0, 100.0), "5G": (50.0, 500.0), "none": (0.0, 0.0)}
_FACTORS = {"poor": 0.2, "fair": 0.5, "good": 0.8, "excellent": 1.0, "none": 0.0}
_ADVICE = {
    "Very Poor": "Connection is very slow. Basic web browsing might be difficult.",
    "Poor": "Connection is slow. Web browsing may be sluggish, streaming difficult.",
    "Fair": "Connection is okay for web browsing and some standard definition streaming.",
    "Good": "Connection is good for most activities, including HD streaming.",
    "Excellent": "Connection is very fast.",
}
_SIM = {
    "active": "Your SIM card is active and working.",
    "missing": "No SIM card detected in the phone.",
    "locked_pin": "The SIM card is locked with a PIN code.",
    "locked_puk": "The SIM card is locked with a PUK code.",
}


class Company:
    """The agent's side: customers, lines, bills and plans."""

    def __init__(self, tables: Mapping[str, Any]):
        self.tables = deepcopy(dict(tables))

    def find(self, table: str, identity: str) -> dict[str, Any]:
        """The row of a table. Raises ValueError: there is none."""
        key = FIELDS[table].split()[0]
        for row in self.tables[table]:
            if row[key] == identity:
                return row
        what = table.removesuffix("s").capitalize()
        raise ValueError(f"{what} with ID {identity} not found")

    def line_of(self, customer_id: str, line_id: str) -> dict[str, Any]:
        if line_id not in self.find("customers", customer_id)["line_ids"]:
            raise ValueError(f"Line {line_id} not found for customer {customer_id}")
        return self.find("lines", line_id)

    def bills_of(self, customer_id: str) -> list[dict[str, Any]]:
        return [self.find("bills", bill) for bill in self.find("customers", customer_id)["bill_ids"]]

    # the agent's tools

    def get_customer_by_phone(self, phone_number: str) -> Any:
        for row in self.tables["customers"]:
            lines = [self.find("lines", line)["phone_number"] for line in row["line_ids"]]
            if phone_number in (row["phone_number"], *lines):
                return _dumped("customers", row)
        raise ValueError(f"Customer with phone number {phone_number} not found")

    def get_customer_by_id(self, customer_id: str) -> Any:
        return _dumped("customers", self.find("customers", customer_id))

    def get_customer_by_name(self, full_name: str, dob: str) -> Any:
        rows = self.tables["customers"]
        same = [row for row in rows if row["full_name"].lower() == full_name.lower() and row["date_of_birth"] == dob]
        return [_dumped("customers", row) for row in same]

    def get_details_by_id(self, id: str) -> Any:  # tau2's name of the argument
        table = {"L": "lines", "D": "devices", "B": "bills", "C": "customers", "P": "plans"}.get(id[:1])
        if table is None:
            raise ValueError(f"Unknown ID format or type: {id}")
        return _dumped(table, self.find(table, id))

    def get_bills_for_customer(self, customer_id: str, limit: int = 12) -> Any:
        newest = sorted(self.bills_of(customer_id), key=lambda bill: bill["issue_date"], reverse=True)
        return [_dumped("bills", bill) for bill in newest[:limit]]

    def get_data_usage(self, customer_id: str, line_id: str) -> Any:
        line = self.line_of(customer_id, line_id)
        plan = self.find("plans", line["plan_id"])
        # tau2 gives the numbers of such an answer as texts.
        return {
            "line_id": line_id, "data_used_gb": str(line["data_used_gb"]), "data_limit_gb": str(plan["data_limit_gb"]),
            "data_refueling_gb": str(line["data_refueling_gb"]), "cycle_end_date": "2025-02-28",
        }  # fmt: skip

    def send_payment_request(self, customer_id: str, bill_id: str) -> str:
        if any(bill["status"] == "Awaiting Payment" for bill in self.bills_of(customer_id)):
            raise ValueError("A bill is already awaiting payment for this customer")
        if bill_id not in self.find("customers", customer_id)["bill_ids"]:
            raise ValueError(f"Bill {bill_id} not found for customer {customer_id}")
        self.find("bills", bill_id)["status"] = "Awaiting Payment"
        return f"Payment request sent to the customer for bill {bill_id}"

    def suspend_line(self, customer_id: str, line_id: str, reason: str) -> Any:
        line = self.line_of(customer_id, line_id)
        if line["status"] != "Active":
            raise ValueError("Line must be active to suspend")
        line.update(status="Suspended", suspension_start_date=TODAY)
        words = "Line suspended successfully. $5/month holding fee will apply."
        return {"message": words, "line": _dumped("lines", line)}

    def resume_line(self, customer_id: str, line_id: str) -> Any:
        line = self.line_of(customer_id, line_id)
        if line["status"] not in ("Suspended", "Pending Activation"):
            raise ValueError("Line must be suspended to resume")
        line.update(status="Active", suspension_start_date=None)
        return {"message": "Line resumed successfully", "line": _dumped("lines", line)}

    def enable_roaming(self, customer_id: str, line_id: str) -> str:
        return self._roaming(customer_id, line_id, True)

    def disable_roaming(self, customer_id: str, line_id: str) -> str:
        return self._roaming(customer_id, line_id, False)

    def _roaming(self, customer_id: str, line_id: str, on: bool) -> str:
        line, word = self.line_of(customer_id, line_id), "enabled" if on else "disabled"
        if line["roaming_enabled"] is on:
            return f"Roaming was already {word}"
        line["roaming_enabled"] = on
        return f"Roaming {word} successfully"

    def refuel_data(self, customer_id: str, line_id: str, gb_amount: float) -> Any:
        line = self.line_of(customer_id, line_id)
        if gb_amount <= 0:
            raise ValueError("Refuel amount must be positive")
        price = self.find("plans", line["plan_id"])["data_refueling_price_per_gb"]
        charge = gb_amount * price
        line["data_refueling_gb"] += gb_amount
        words = f"Data refueling: {gb_amount} GB at ${price}/GB"
        draft = next((bill for bill in self.bills_of(customer_id) if bill["status"] == "Draft"), None)
        if draft is not None:
            item = {"description": words, "amount": charge, "date": TODAY, "item_type": "Charge"}
            draft.update(line_items=[*draft["line_items"], item], total_due=draft["total_due"] + charge)
        told = f"Successfully added {gb_amount} GB of data for line {line_id} for ${charge:.2f}"
        return {"message": told, "new_data_refueling_gb": str(line["data_refueling_gb"]), "charge": str(charge)}

    def transfer_to_human_agents(self, summary: str) -> str:
        return "Transfer successful"

    # what a task begins with

    def set_data_usage(self, customer_id: str, line_id: str, data_used_gb: float) -> None:
        self.line_of(customer_id, line_id)["data_used_gb"] = data_used_gb

    def suspend_line_for_overdue_bill(
        self, customer_id: str, line_id: str, new_bill_id: str, contract_ended: bool
    ) -> None:
        line, (begin, end, due) = self.line_of(customer_id, line_id), LAST_MONTH
        price = self.find("plans", line["plan_id"])["price_per_month"]
        item = {"description": f"Charge for line {line_id}", "amount": price, "date": TODAY, "item_type": "Charge"}
        self.tables["bills"].append(
            {"bill_id": new_bill_id, "customer_id": customer_id, "period_start": begin, "period_end": end,
             "issue_date": begin, "total_due": 0 + price, "due_date": due, "line_items": [item], "status": "Overdue"}
        )  # fmt: skip
        self.find("customers", customer_id)["bill_ids"].append(new_bill_id)
        line.update(status="Suspended", suspension_start_date=TODAY)
        if contract_ended:
            line["contract_end_date"] = end


def _dumped(table: str, row: Mapping[str, Any]) -> dict[str, Any]:
    result = {name: deepcopy(row.get(name)) for name in FIELDS[table].split()}
    return {name: value.replace("T", " ") if name in _TIMES and value else value for name, value in result.items()}


class Phone:
    """The user's side: a phone, and where the user is."""

    def __init__(self, device: Mapping[str, Any]):
        self.device = deepcopy(dict(device))
        self.apn = {**self.device["active_apn_settings"], "reset_at_reboot": False}
        self.abroad, self.roaming_allowed, self.used_up, self.line_active = False, False, False, True
        self.phone_number = ""
        self.request: dict[str, Any] | None = None
        self.vpn_is_slow = False

    def _toggle(self, name: str) -> bool:
        self.device[name] = not self.device[name]
        return self.device[name]

    def _shown(self, text: str) -> str:
        return f"{text}\n{self.check_status_bar()}"

    @property
    def _sim(self) -> str:
        return "missing" if self.device["sim_card_missing"] else self.device["sim_card_status"]

    def simulate_network_search(self) -> None:
        device = self.device
        served = self._sim == "active" and not device["airplane_mode"] and self.line_active
        network = (
            _NETWORKS[device["network_mode_preference"]] if served and self.apn["apn_name"] != "broken" else "none"
        )
        device["network_technology_connected"] = network
        device["network_signal_strength"] = _SIGNAL[network]
        device["network_connection_status"] = "no_service" if network == "none" else "connected"

    def _has_data(self) -> bool:
        device = self.device
        roams = not self.abroad or (device["roaming_enabled"] and self.roaming_allowed)
        served = not device["airplane_mode"] and device["network_signal_strength"] != "none"
        connected = device["network_connection_status"] != "no_service"
        return served and connected and roams and device["data_enabled"] and not self.used_up

    # what the user can look at

    def check_status_bar(self) -> str:
        device = self.device
        if device["airplane_mode"]:
            signs = ["✈️ Airplane Mode"]
        else:
            network = device["network_technology_connected"]
            signs = [_BARS[device["network_signal_strength"]], *([network] if network != "none" else [])]
            if device["data_enabled"] and network != "none":
                signs += ["📱 Data Enabled", *(["🔽 Data Saver"] if device["data_saver_mode"] else [])]
            else:
                signs.append("📵 Data Disabled")
        signs += ["🔒 VPN Connected"] if device["vpn_connected"] else []
        return "Status Bar: " + " | ".join([*signs, f"🔋 {device['battery_level']}%"])

    def check_network_status(self) -> str:
        device = self.device
        return "\n".join([
            f"Airplane Mode: {_on(device['airplane_mode'])}",
            f"SIM Card Status: {self._sim}",
            f"Cellular Connection: {device['network_connection_status']}",
            f"Cellular Signal: {device['network_signal_strength']}",
            f"Cellular Network Type: {device['network_technology_connected']}",
            f"Mobile Data Enabled: {'Yes' if device['data_enabled'] else 'No'}",
            f"Data Roaming Enabled: {'Yes' if device['roaming_enabled'] else 'No'}",
            f"Wi-Fi Radio: {_on(device['wifi_enabled'])}",
            f"Wi-Fi Connected: {'Yes' if device['wifi_connected'] else 'No'}",
        ])  # fmt: skip

    def check_network_mode_preference(self) -> str:
        return f"Network Mode Preference: {self.device['network_mode_preference']}"

    def check_sim_status(self) -> str:
        return _SIM[self._sim]

    def check_data_restriction_status(self) -> str:
        return (
            "Data Saver mode is ON (limits data usage)."
            if self.device["data_saver_mode"]
            else "Data Saver mode is OFF."
        )

    def check_apn_settings(self) -> str:
        url = self.apn["mmsc_url"] or "Not Set"
        return (
            f"Current APN Name: {self.apn['apn_name']}\nMMSC URL (for picture messages): {url}\n"
            "(These are technical settings, usually best left unchanged.)"
        )

    def check_wifi_status(self) -> str:
        return (
            "Wi-Fi is ON but not connected to any network." if self.device["wifi_enabled"] else "Wi-Fi is turned OFF."
        )

    def check_wifi_calling_status(self) -> str:
        return f"Wi-Fi Calling is currently turned {_on(self.device['wifi_calling_enabled'])}."

    def check_vpn_status(self) -> str:
        if not self.device["vpn_connected"]:
            return "VPN is turned OFF."
        level = "<PerformanceLevel.POOR: 'poor'>" if self.vpn_is_slow else "<PerformanceLevel.EXCELLENT: 'excellent'>"
        return (
            "VPN is ON and connected. Details: {'server_address': '192.168.1.1', 'protocol': 'OpenVPN', "
            f"'server_performance': {level}}}"
        )

    def check_installed_apps(self) -> str:
        return f"The following apps are installed on the phone: {', '.join(self.device['app_statuses'])}"

    def check_app_status(self, app_name: str) -> str:
        if app_name not in self.device["app_statuses"]:
            return f"App '{app_name}' not found on this phone."
        granted = self._granted(app_name)
        lines = [" - Permissions Granted:", *(f"   - {name}" for name in granted)]
        return "\n".join([f"Status for App: {app_name}", *(lines if granted else [" - Permissions: None granted."])])

    def check_app_permissions(self, app_name: str) -> str:
        if app_name not in self.device["app_statuses"]:
            return f"App '{app_name}' not found on this phone."
        granted = self._granted(app_name)
        if not granted:
            return f"App '{app_name}' currently has no permissions granted."
        return f"App '{app_name}' has permission for: {', '.join(granted)}."

    def _granted(self, app_name: str) -> list[str]:
        return [name for name, given in self.device["app_statuses"][app_name]["permissions"].items() if given]

    def check_payment_request(self) -> str:
        if self.request is None:
            return "No payment request has been made."
        return f"You have a payment request for bill {self.request['bill_id']} of {self.request['amount_due']} USD."

    def run_speed_test(self) -> str:
        if not self._has_data():
            return "Speed test failed: No Connection."
        device = self.device
        factor = 0.1 if device["vpn_connected"] and self.vpn_is_slow else 1.0
        factor *= 0.2 if device["data_saver_mode"] else 1.0
        slowest, fastest = _SPEEDS[device["network_technology_connected"]]
        speed = round((slowest + fastest) / 2.0 * _FACTORS[device["network_signal_strength"]] * factor, 2)
        bounds = {1: "Very Poor", 5: "Poor", 25: "Fair", 100: "Good"}
        word = next((word for bound, word in bounds.items() if speed < bound), "Excellent")
        return f"Speed Test Result: {speed:.2f} Mbps ({word}). {_ADVICE[word]}"

    def can_send_mms(self) -> str:
        device = self.device
        calling = device["wifi_calling_enabled"] and device["wifi_calling_mms_over_wifi"]
        able = self._has_data() and device["network_technology_connected"] != "2G" and not calling
        able = able and self.apn["mmsc_url"] is not None and {"sms", "storage"} <= {*self._granted("messaging")}
        return f"Your messaging app {'can' if able else 'cannot'} send MMS messages."

    # what the user can change

    def set_network_mode_preference(self, mode: str) -> str:
        if mode not in _NETWORKS:
            options = ", ".join(_NETWORKS)
            return self._shown(
                f"Failed to set network mode: '{mode}' is not a valid option. Please use one of: {options}"
            )
        self.device["network_mode_preference"] = mode
        self.simulate_network_search()
        return self._shown(f"Preferred Network Mode set to: {mode}")

    def toggle_airplane_mode(self) -> str:
        if self._toggle("airplane_mode"):
            self.device["vpn_connected"] = False
        self.simulate_network_search()
        return self._shown(f"Airplane Mode is now {_on(self.device['airplane_mode'])}.")

    def reseat_sim_card(self) -> str:
        self.device["sim_card_missing"] = False
        self.simulate_network_search()
        return self._shown("SIM card re-seated successfully.")

    def toggle_data(self) -> str:
        on = self._toggle("data_enabled")
        self.simulate_network_search()
        return self._shown(f"Mobile Data is now {_on(on)}.")

    def toggle_roaming(self) -> str:
        on = self._toggle("roaming_enabled")
        self.simulate_network_search()
        return self._shown(f"Data Roaming is now {_on(on)}.")

    def toggle_data_saver_mode(self) -> str:
        return self._shown(f"Data Saver Mode is now {_on(self._toggle('data_saver_mode'))}.")

    def reset_apn_settings(self) -> str:
        self.apn["reset_at_reboot"] = True
        self.simulate_network_search()
        return self._shown("APN settings will reset at reboot.")

    def toggle_wifi_calling(self) -> str:
        return self._shown(f"Wi-Fi Calling is now {_on(self._toggle('wifi_calling_enabled'))}.")

    def connect_vpn(self) -> str:
        if self.device["vpn_connected"]:
            return "VPN already connected."
        self.device["vpn_connected"] = True
        return self._shown("VPN connected successfully.")

    def disconnect_vpn(self) -> str:
        connected, self.device["vpn_connected"] = self.device["vpn_connected"], False
        return self._shown("VPN disconnected successfully." if connected else "No active VPN connection to disconnect.")

    def grant_app_permission(self, app_name: str, permission: str) -> str:
        permission = permission.lower()
        if app_name not in self.device["app_statuses"]:
            return self._shown(f"Error. App '{app_name}' not found. Cannot grant permission.")
        known = self.device["app_statuses"][app_name]["permissions"]
        if permission not in known:
            words = f"Permission '{permission}' not tracked for app '{app_name}', available permissions: {list(known)}"
            return self._shown(f"Error. {words}")
        known[permission] = True
        return self._shown(f"Success. Permission '{permission}' granted to app '{app_name}'.")

    def reboot_device(self) -> str:
        lines = ["Restarting network services..."]
        if self.apn["reset_at_reboot"]:
            lines.insert(0, "Resetting APN settings...")
            self.apn = {
                "apn_name": "internet",
                "mmsc_url": "http://mms.carrier.com/mms/wapenc",
                "reset_at_reboot": False,
            }
        self.simulate_network_search()
        return self._shown("\n".join(lines))

    def make_payment(self) -> str:
        if self.request is None:
            return "You do not have a payment request."
        self.request["paid"] = True
        return f"Payment of {self.request['amount_due']} USD has been made for bill {self.request['bill_id']}."

    # what a task begins with

    def set_user_info(self, name: str, phone_number: str) -> None:
        self.phone_number = phone_number

    def set_user_location(self, abroad: bool) -> None:
        self.abroad = abroad

    def turn_airplane_mode_on(self) -> None:
        self.device["airplane_mode"] = False
        self.toggle_airplane_mode()

    def turn_data_off(self) -> None:
        self.device["data_enabled"] = True
        self.toggle_data()

    def turn_roaming_on(self) -> None:
        self.device["roaming_enabled"] = False
        self.toggle_roaming()

    def turn_roaming_off(self) -> None:
        self.device["roaming_enabled"] = True
        self.toggle_roaming()

    def turn_data_saver_mode_on(self) -> None:
        self.device["data_saver_mode"] = True

    def unseat_sim_card(self) -> None:
        self.device["sim_card_missing"] = True
        self.simulate_network_search()

    def lock_sim_card(self, mode: str) -> None:
        self.device["sim_card_status"] = f"locked_{mode}"
        self.simulate_network_search()

    def break_apn_settings(self) -> None:
        self.apn["apn_name"] = "broken"
        self.simulate_network_search()

    def break_apn_mms_setting(self) -> None:
        self.apn["mmsc_url"] = None

    def set_wifi_calling(self, enabled: bool, mms_over_wifi: bool) -> None:
        self.device.update(wifi_calling_enabled=enabled, wifi_calling_mms_over_wifi=mms_over_wifi)

    def break_vpn(self) -> None:
        self.connect_vpn()
        self.vpn_is_slow = True

    def remove_app_permission(self, app_name: str, permission: str) -> None:
        self.device["app_statuses"][app_name]["permissions"][permission] = False


def _on(value: bool) -> str:
    return "ON" if value else "OFF"


class State:
    """Both sides, kept in step as tau2's environment does it."""

    def __init__(self, tables: Mapping[str, Any], device: Mapping[str, Any], initial: Iterable[Mapping[str, Any]] = ()):
        self.company, self.phone = Company(tables), Phone(device)
        self._synchronize()
        for step in initial:
            side = self.phone if step["env_type"] == "user" else self.company
            getattr(side, step["func_name"])(**step["arguments"])
            self._synchronize()

    def call(self, name: str, arguments: Mapping[str, Any]) -> str:
        """What a tool answers."""
        side = self.phone if hasattr(self.phone, name) else self.company
        try:
            answer = getattr(side, name)(**arguments)
        except (ValueError, TypeError, AttributeError) as error:
            return f"Error: {error}"
        self._synchronize()
        return answer if isinstance(answer, str) else json.dumps(answer)

    def _synchronize(self) -> None:
        company, phone = self.company, self.phone
        line = next((row for row in company.tables["lines"] if row["phone_number"] == phone.phone_number), None)
        if line is None:
            return
        plan = company.find("plans", line["plan_id"])
        phone.line_active, phone.roaming_allowed = line["status"] == "Active", line["roaming_enabled"]
        phone.used_up = line["data_used_gb"] >= plan["data_limit_gb"] + line["data_refueling_gb"]
        if phone.request is not None and phone.request.get("paid"):
            company.find("bills", phone.request["bill_id"])["status"] = "Paid"
            phone.request = None
        if phone.request is None:
            customer = company.get_customer_by_phone(phone.phone_number)["customer_id"]
            waiting = [bill for bill in company.bills_of(customer) if bill["status"] == "Awaiting Payment"]
            if waiting:
                phone.request = {"bill_id": waiting[0]["bill_id"], "amount_due": waiting[0]["total_due"]}
